// Expectations, grouped in two files: what pages look like (expect_pages.cc) and everything else
// (expect.cc). Each gets the call with the words after `expect`.
// Thread: the runner's.
#pragma once

#include "tests/scenario/stage.h"

namespace memdecay::scenario {

// `expect S:0..3 mapped`, `expect S:0 host`.
Outcome expect_page_state(Stage& stage, const Call& call);
Outcome expect_bytes(Stage& stage, const Call& call);
// `expect blank S:0`: its engine reads only zeros there.
Outcome expect_blank(Stage& stage, const Call& call);
// `expect count S mapped <= 10`.
Outcome expect_count(Stage& stage, const Call& call);
Outcome expect_slots(Stage& stage, const Call& call);
Outcome expect_exactness(Stage& stage, const Call& call);
Outcome expect_victims(Stage& stage, const Call& call);
Outcome expect_score(Stage& stage, const Call& call);
Outcome expect_reason(Stage& stage, const Call& call);

// "3:mapped/device" for every page, for messages.
std::string describe_pages(Stage& stage, const SessionModel& session);

}  // namespace memdecay::scenario
