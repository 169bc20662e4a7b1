"""Breaks one synchronising operation of a collective, lets the checker find it, and draws the schedule that shows it.

usage: python find_a_race.py [TIMELINE.html]
"""

import sys

import tandem

# listing: find
assert tandem.check("send_recv", algorithm="ring", pes=3).clean

mutant = next(one for one in tandem.mutants("send_recv", algorithm="ring", pes=3) if "wait dropped" in one.broken)
result = tandem.check("send_recv", algorithm="ring", pes=3, broken=mutant.broken)
finding = result.findings[0]
print(f"without '{mutant.broken}': {finding.kind}")
for site in finding.sites:
    print(f"  {site.operation} at {site.file}:{site.line} by {site.by}")
print(f"  missing: {finding.missing}")
print(f"  again: {finding.replay}")
# end of listing

if len(sys.argv) > 1:
    print("wrote", finding.timeline.save(sys.argv[1]))
