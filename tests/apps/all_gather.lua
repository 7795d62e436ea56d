-- The README shows what follows; ranks are tuned with it as it stands there.
collective "all_gather" { space = { protocol = {"LL", "LL128", "Simple"}, channels = {0, 16, 24} } }
