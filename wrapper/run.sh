# Runs one command of a session. The text before this sets tai_id, tai_linger (1 or
# empty) and tai_child (child.sh); $1 is the command's PATH, empty for the container's
# own; the rest is the command.
# Descriptors: 3 the real stdout, 8 the real stderr, 4 the fifo, 5 the status file, 7 the
# command's stdin. A stop finds 3, 4, 5 and 8 through /proc, so that what becomes of the
# names in /tmp changes nothing that matters. 1 will not do, since each redirection of a
# builtin changes it for a moment; 2 is /dev/null, so that no shell prints "Killed" into
# the output.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154,SC3045
# mksh forgets a descriptor that it saved as 10, and then never closes it: let that be
# of /dev/null, before it could be the output.
exec 3</dev/null
exec 3>&1 8>&2 >/dev/null 2>&1
trap : HUP INT QUIT TERM USR1 USR2 ALRM PIPE
tai_f=/tmp/tai-exec.$tai_id
tai_path=${1:-$PATH} tai_made='' tai_w='' tai_me=''
shift
PATH=/usr/bin:/bin:/usr/sbin:/sbin

tai_clean() { command eval 'rm -f $tai_f.pid $tai_f.pid.new $tai_f.fifo $tai_f.status $tai_f.mark $tai_f.out'; }
tai_over() { echo "tai-exec:$tai_id:end" >&3 && echo "tai-exec:$tai_id:end" >&8; }
# A refusal: nothing was run.
tai_refuse() {
	trap 'exit 126' EXIT
	echo "tai-exec:$tai_id:refused $1" >&8
	tai_over
	[ -z "$tai_made" ] || tai_clean
	exit 126
}
# A fork that fails ends the script.
trap 'tai_refuse "no process can be started"' EXIT

for tai_k in mkfifo setsid mv rm sleep; do
	command -v $tai_k >/dev/null || tai_refuse "the image has no $tai_k"
done

# tai_pipe FD: tai_v names the pipe as readlink does. fdinfo saves the fork where the
# kernel tells the inode there.
tai_pipe() {
	tai_v=
	[ -p "/proc/$$/fd/$1" ] || tai_refuse "the output is not a pair of pipes"
	while read -r tai_k tai_l; do
		[ "$tai_k" != ino: ] || tai_v="pipe:[$tai_l]"
	done <"/proc/$$/fdinfo/$1"
	[ "$tai_v" ] || tai_v=$(readlink "/proc/$$/fd/$1")
	case $tai_v in
	'pipe:['*']') ;;
	*) tai_refuse "cannot read what the output is connected to" ;;
	esac
}
tai_stat $$ || tai_refuse "cannot read /proc"
tai_began=$tai_start
tai_pipe 3
tai_out=$tai_v
tai_pipe 8
set -C
echo "$tai_out
$tai_v
$$ $tai_began" >$tai_f.out || tai_refuse "cannot write $tai_f.out"
set +C
tai_made=1
mkfifo $tai_f.fifo || tai_refuse "cannot make $tai_f.fifo"
{ [ -p $tai_f.fifo ] && command exec 4<>$tai_f.fifo; } || tai_refuse "cannot open $tai_f.fifo"
{ command exec 5>>$tai_f.status && echo "w $$ $tai_began" >&5; } || tai_refuse "cannot write $tai_f.status"

tai_sweep

if [ "$tai_linger" ]; then exec 7</dev/null; else exec 7<&0; fi
# In the foreground, since a background command would ignore INT and QUIT for good; in
# a subshell, since redirections of a plain command are made in the shell that waits.
(
	exec setsid /bin/sh -c "$tai_child" sh $tai_f "$tai_path" "$@" \
		<&7 >&3 3<"/proc/$$/fd/4" 6>&5 9>&8 4>&- 5>&- 7<&- 8>&-
)
tai_code=$?
echo "s $tai_code" >&5
# Did its process come as far as becoming the command? Then it has put down its pid.
tai_ran() {
	while read -r tai_k tai_l; do
		if [ "$tai_k" = p ]; then return; fi
	done <"/proc/$$/fd/5"
	tai_refuse "$1"
}
case $tai_code in
124) tai_ran "cannot write $tai_f.pid" ;;
125) tai_ran "no process can be started" ;;
12[67]) tai_ran "the command's process cannot be set up; its arguments may be too long" ;;
esac
trap 'exit $tai_code' EXIT

# The command runs until nothing holds its output. One that holds is remembered and
# looked at alone, and all of them again when it has let go.
tai_a=/proc/$$/fd/3 tai_b=/proc/$$/fd/8 tai_since=$tai_began tai_i=0 tai_told=
while :; do
	tai_scan
	[ $? != 1 ] || break
	while :; do
		tai_i=$((tai_i + 1))
		case $tai_i in
		1) tai_nap 0.02 ;;
		2 | 3) tai_nap 0.1 ;;
		? | ??) tai_nap 0.25 ;;
		*) tai_nap 1 ;;
		esac
		tai_holds $tai_h
		[ $? != 1 ] || break
		[ "$tai_told" ] || echo "tai-exec:$tai_id:exited $tai_code" >&8
		tai_told=1
	done
done
echo e >&5
tai_over
exec 4<&-
tai_clean
# The engine cuts the streams about 2 s after our end, so that end waits for the reader
# to have all: it closes our stdin then. dash has no read with a limit.
if [ "$tai_linger" ]; then
	read -r -t 10 tai_l
	if [ $? = 2 ]; then
		trap : CHLD
		(exec sleep 10) </dev/null 3>&- 8>&- &
		read -r tai_l
		# The child may not yet have put our traps off, and would take a polite signal for ours.
		kill -9 $!
	fi
fi
exit $tai_code
