#!/bin/sh
# What does the turns of the kill test: it notes in an append-only ledger which inputs it was given,
# works for a while, and notes that it applied them. The ledger is the outside world: what stands
# there has happened, whatever the store says. It may outlive the process that started it.
ledger=$1
IFS= read -r turn

turnId=${turn#*'"turnId":"'}
turnId=${turnId%%'"'*}
pause=${turn#*'pause '}
pause=${pause%%'"'*}
given=
rest=$turn
while :; do
  case $rest in *'"inputId":"'*) ;; *) break ;; esac
  rest=${rest#*'"inputId":"'}
  inputId=${rest%%'"'*}
  rest=${rest#*'"attempt":'}
  given="$given $inputId/${rest%%,*}"
done

# One write a line, so that lines of programs that run side by side never mix.
for input in $given; do echo "began ${input%/*} ${input#*/} $turnId $$" >>"$ledger"; done
[ "$pause" = 0 ] || sleep "$pause"
for input in $given; do echo "applied ${input%/*} ${input#*/} $turnId $$" >>"$ledger"; done
echo "{\"result\":\"$turnId\"}"
