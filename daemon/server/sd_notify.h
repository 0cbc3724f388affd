// Tells systemd what the daemon is doing (Type=notify), without libsystemd: one datagram.
// Thread: any.
#pragma once

#include <string>
#include <string_view>

namespace memdecay::server {

// `socket` is $NOTIFY_SOCKET ("@…" is an abstract name); empty: nobody wants to know.
void sd_notify(const std::string& socket, std::string_view state);

}  // namespace memdecay::server
