// Stands for the driver while launch_spy is linked; nothing of it is used.
