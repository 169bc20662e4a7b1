# The tests of the checker notice when it lacks the rule that a word to which other nodes add is added to by them alone.

include(mutant.cmake)
tandem_mutant(check rule_of_additions detector_signals "s/ && next.through_nic == writer.through_nic//"
              "*ADD_through_a_NIC_ADD_by_the_word_s_PE*")
