// From the C interface's opaque handles to the objects behind them.
// Thread: any. Invariant: a handle is a pointer to exactly that object, made by the library.
#pragma once

#include "client/lib/client.h"
#include "client/memdecay.h"

namespace memdecay::client {

inline Client& of(memdecay_client* client) { return *reinterpret_cast<Client*>(client); }
inline const Client& of(const memdecay_client* client) {
  return *reinterpret_cast<const Client*>(client);
}
inline Session& of(memdecay_session* session) { return *reinterpret_cast<Session*>(session); }
inline const Session& of(const memdecay_session* session) {
  return *reinterpret_cast<const Session*>(session);
}
inline memdecay_client* handle(Client* client) {
  return reinterpret_cast<memdecay_client*>(client);
}
inline memdecay_session* handle(Session* session) {
  return reinterpret_cast<memdecay_session*>(session);
}

}  // namespace memdecay::client
