#include "cli/live/live_pages.hpp"

#include <memory>
#include <string_view>
#include <utility>

#include "cli/page/page.hpp"

namespace contextune::cli {
namespace {

HttpResponse no_report() {
  return plain_response(500, "The report could not be made; ask again.\n");
}

}  // namespace

void LivePages::answer(const HttpRequest& request, HttpAnswer answer) {
  // A site of another name may have had that name lead here, to read with the reader's browser.
  if (!is_own_name(request.host)) {
    const std::string port = std::to_string(port_);
    return answer(plain_response(403, "This is 127.0.0.1:" + port +
                                          " to its readers; with ssh, forward the same port: -L " +
                                          port + ":127.0.0.1:" + port + "\n"));
  }
  const std::string_view path = request.path;
  const std::size_t slash = path.find('/', 1);
  const std::string_view word = path.substr(1, slash == path.npos ? path.npos : slash - 1);
  if (!token_.is(word)) {
    return answer(plain_response(
        403, "The address is not the one that `contextune report --follow` has printed.\n"));
  }
  const std::string_view rest = slash == path.npos ? std::string_view() : path.substr(slash);
  if (rest == "/") return answer_page(std::move(answer));
  if (rest == "/data") return answer_data(request.version, std::move(answer));
  answer(plain_response(404, "There is no such page.\n"));
}

std::string LivePages::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/" + token_.text() + "/";
}

bool LivePages::is_own_name(const std::string& host) const {
  const std::string port = ":" + std::to_string(port_);
  return host == "127.0.0.1" + port || host == "localhost" + port;
}

void LivePages::answer_page(HttpAnswer answer) {
  report_.get([answer = std::move(answer)](const std::shared_ptr<const LiveSnapshot>& snapshot) {
    if (!snapshot) return answer(no_report());
    answer({200,
            "text/html; charset=utf-8",
            {},
            std::make_shared<std::string>(page_of(snapshot->data, snapshot->number))});
  });
}

void LivePages::answer_data(const std::string& version, HttpAnswer answer) {
  report_.get(
      [version, answer = std::move(answer)](const std::shared_ptr<const LiveSnapshot>& snapshot) {
        if (!snapshot) return answer(no_report());
        const std::string newest = '"' + std::to_string(snapshot->number) + '"';
        if (version == newest) return answer({304, {}, newest, nullptr});
        answer({200, "application/json", newest,
                std::shared_ptr<const std::string>(snapshot, &snapshot->data)});
      });
}

}  // namespace contextune::cli
