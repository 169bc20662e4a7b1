# The tests of the wire notice when it lacks one of its protections. For each of them the build makes a form of test_wire
# in which a source has one change, which takes the protection out. A test passes if the named case fails there.

include(mutant.cmake)
function(tandem_wire_mutant name source sed case)
  tandem_mutant(wire "${name}" "${source}" "${sed}" "${case}")
endfunction()

tandem_wire_mutant(
  data_before_the_word proxy/placing
  "s/^  if .*access->write\\(to, data\\);/  change_word(header);\\n&/; s/^  change_word\\(header\\);$//"
  "Proxies.PlaceDataBeforeTheWordInTheSendersOrder")
tandem_wire_mutant(order_of_numbers proxy/receiving "s/header->number > from.received \\+ 1/false/"
                   "Proxies.PlaceDataBeforeTheWordInTheSendersOrder")
tandem_wire_mutant(order_of_held_data proxy/requests
                   "/::begin_put/,/^}/ s/^  to.outgoing.push_back\\(\\{header, current.number\\}\\);$/  if (request.holds_data) return send(header, View(request.held).first(request.bytes));\\n&/"
                   "KernelRequests.ThatHoldTheirDataStayInOrder")
tandem_wire_mutant(refusal_of_repeats proxy/receiving "s/header->number <= from.received/false/" "Proxies.AddEachSignalOnce")
tandem_wire_mutant(bounds proxy/placing "s/offset < 0 .* most - bytes/false/" "Proxies.RefuseWhatReachesBeyondTheirMemory")
tandem_wire_mutant(authentication message "s/(raw\\(from_.*\\)\\)) != 0/\\1 > 0/" "*Messages.AreRefusedWithAnyBitChanged*")
tandem_wire_mutant(heartbeats proxy/beats "s/send\\(header, \\{\\}\\);/(void)header;/" "Heart.BeatsAlongTheRailAlone")
tandem_wire_mutant(answers_to_flushes proxy/progress "s/mailbox_.note\\(sent_.mailbox, answered_/mailbox_.note(sent_.mailbox, sent_/"
                   "Proxies.AnswerFlushesOnceTheOtherSideHasAnswered")
tandem_wire_mutant(data_before_answers proxy/answers "s/!setup_.access->are_written\\(answer.writes\\)/false/" "KernelRequests.AreAnsweredOnceDataIsInPlace")
tandem_wire_mutant(data_until_it_is_sent proxy/sending "s/&message\\] \\{ message.is_sent = true; \\}/] {}/; s/if \\(is_uncopied\\)/& message.is_sent = true;\\n&/"
                   "Proxies.NoteDataAsSentOnceItIs")
tandem_wire_mutant(rings proxy/progress "s/if \\(is_awaited\\)/if (is_awaited \\&\\& false)/" "Proxies.RingForThoseWhoWaitAlone")
tandem_wire_mutant(pass_of_callers fabric/arrivals "s/sodium_memcmp\\(.*\\) == 0/true/"
                   "*FabricConnections.RefuseACallerWithoutThePass*")
tandem_wire_mutant(passing proxy/sending "s/for \\(const int pe : busy_\\) has_moved/for (const int pe : busy_) if (pe == busy_.front()) has_moved/; s/^  if \\(!busy_.empty.*//"
                   "SeveralPes.PassAPeThatIsNotReached")
tandem_wire_mutant(shares_of_readings proxy/requests "s/to.readings < most_put_readings_ - put_readings_/0 * to.readings + put_readings_ < most_put_readings_/"
                   "KernelRequests.PassAPeThatIsNotReached")
tandem_wire_mutant(shares_of_slots fabric/lane "s/own.slots >= free_.size\\(\\)/free_.empty()/" "*FabricConnections.LeaveRoomForOtherPes*")
tandem_wire_mutant(room_beside_answers proxy/answers "s/ && answer_readings_ < most_answer_readings_//" "KernelRequests.FindRoomBesideAnswers")
tandem_wire_mutant(turns_of_answers proxy/answers "s/^ *first_to_answer_ = .*//" "SeveralPes.AnswerPesInTurns")
tandem_wire_mutant(bytes_of_early_messages proxy/receiving "s/from.early_bytes > kMostEarly/from.early.size() > 65536/"
                   "SeveralPes.KeepNoMoreBytesThanALostMessageIsWorth")
tandem_wire_mutant(ends_of_connections fabric/connections "s/kind == FI_SHUTDOWN/false/" "*FabricConnections.NoticeThatOneOfThemBroke*")
tandem_wire_mutant(reports_of_connections proxy/beats "s/now - one.since <= silence/& * 1e9/"
                   "SeveralPes.ReportAConnectionThatHasBeenBrokenForATime")
tandem_wire_mutant(end_of_gets proxy/host_calls "s/is_writing_answer_.load\\(.*\\)\\)/false)/" "SeveralPes.WriteNothingOnceGetsAreOver")
tandem_wire_mutant(messages_in_use proxy/receiving "s/return stays_in_use_;/return false;/" "KernelRequests.AreWrittenFromMessagesInUse")
tandem_wire_mutant(writes_before_release proxy/receiving "s/setup_.access->are_written\\(/kept_.front().writes \\&\\& (/"
                   "KernelRequests.AreWrittenFromMessagesInUse")
tandem_wire_mutant(order_behind_flushes proxy/requests "s/  if \\(waits_for_flush.*//" "SeveralPes.AwaitAFlushBeforeLaterRequestsToOthers")
tandem_wire_mutant(answers_that_give_way proxy/answers "s/ \\|\\| gives_way\\(answer\\)//"
                   "KernelRequests.AreAnsweredBesidePesThatTakeTheirTime")
tandem_wire_mutant(order_behind_earlier_flushes proxy/requests "s/if \\(!flushed.empty\\(\\)\\) orderings_/if (request.precedes_later \\&\\& !flushed.empty()) orderings_/"
                   "SeveralPes.AwaitAFlushBeforeLaterRequestsToOthers")
tandem_wire_mutant(wakes_of_messages fabric/arrivals "s/if \\(has_message\\) wake_\\(\\);//" "*FabricConnections.AreWokenByEachMessage*")
