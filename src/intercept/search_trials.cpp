// What is in flight, for the journal: it may be the last thing that this process tries.
#include <algorithm>

#include "intercept/search.hpp"

namespace contextune::intercept {

void Search::note_tried() {
  const auto winners = tuning_->winners();
  const auto& configs = open_->configs();
  const std::size_t known = std::min({configs.size(), winners.size(), survived_.size()});
  for (SiteIndex i = 0; open_->counted && i < known; ++i) {
    const std::uint32_t config = configs[i];
    if (config != 0 && config != winners[i] && !survived_[i][config])
      open_->tried.emplace_back(i, config);
  }
  note_in_flight();
}

void Search::note_survived(const PassRecord& record) {
  for (const auto& [site, config] : record.tried) survived_[site][config] = true;
}

void Search::note_in_flight() {
  SearchResults::Trials trials;
  const auto add = [&](const PassRecord& record) {
    for (const auto& trial : record.tried)
      if (!survived_[trial.first][trial.second] &&
          std::find(trials.begin(), trials.end(), trial) == trials.end())
        trials.push_back(trial);
  };
  if (stopped_) return results_.set_in_flight({});
  for (const PassRecord& record : pending_) add(record);
  if (open_ != nullptr) add(*open_);
  results_.set_in_flight(trials);
}

}  // namespace contextune::intercept
