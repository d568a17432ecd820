# The command's own process before it becomes the command, in a group of its own.
# $1 is the stem of the files, $2 the command's PATH, the rest the command.
# Descriptors: 3 the fifo to read, 6 the status file, 9 the real stderr.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154,SC3038
# Before the command is there it ends with 125 when a fork fails, else with 124.
tai_k=125
trap 'exit $tai_k' EXIT
# See run.sh: mksh forgets the first it saves.
exec 4</dev/null
exec 4<&-
# The holder keeps the group's id taken until the wrapper's end of the fifo is gone. It
# is forked twice, so that it is no child of the command, which may wait for all it
# has; deaf to polite signals, so that "kill 0" spares it; and lets go of the output
# before it is forked, so that it never counts as holding it.
(
	exec >/dev/null 9>&-
	trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM TSTP TTIN TTOU
	(
		exec <&3 3<&- 6>&-
		while read -r tai_l; do :; done
	) &
	echo "h $!" >&6
) || exit
tai_failed() {
	tai_k=124
	exit
}
echo $$ >"$1.pid.new" || tai_failed
mv "$1.pid.new" "$1.pid" || tai_failed
tai_publish() { echo "p $$ ${20}" >&6; }
read -r tai_l <"/proc/$$/stat" || tai_failed
tai_publish ${tai_l##*) } || tai_failed
# A stop makes its marker before it looks for this process, and we look for the marker
# after we can be found: neither can miss the other.
trap - EXIT
[ ! -e "$1.mark" ] || exit 137
# Shells set these of their own accord.
unset PWD OLDPWD SHLVL
tai_k=
command -v whence >/dev/null && tai_k=ksh
PATH=$2
shift 2
case $tai_k$1 in
*/*) ;;
ksh*)
	# exec runs a builtin of the name there.
	tai_l=$(whence -p -- "$1")
	if [ -z "$tai_l" ]; then
		echo "sh: $1: not found" >&9
		exit 127
	fi
	tai_k=$1
	shift
	exec -a "$tai_k" "$tai_l" "$@" 2>&9 3<&- 6>&- 9>&-
	;;
-*)
	# Some shells take such a name for an option of exec, others know no "--".
	if (exec -- /bin/sh -c :); then exec -- "$@" 2>&9 3<&- 6>&- 9>&-; fi
	;;
esac
exec "$@" 2>&9 3<&- 6>&- 9>&-
exit 127
