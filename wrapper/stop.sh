# Stops one command, or hands its group a signal. The text before this sets tai_of, the
# command's id, and tai_sig. Says what it found as one line of its output.
# Descriptors: 4 the wrapper's fifo, 5 its status file.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154
exec 2>/dev/null
PATH=/usr/bin:/bin:/usr/sbin:/sbin
tai_f=/tmp/tai-exec.$tai_of
tai_found=0 tai_code=-1 tai_held=0 tai_unread=0 tai_mark=0
tai_me='' tai_w='' tai_pid='' tai_hold='' tai_born='' tai_done=''

# tai_say FAILED: the report, and the end. A marker stays only where the command may
# still have to find it.
tai_say() {
	trap - EXIT
	tai_k=$tai_mark
	if [ $tai_found = 1 ] || [ $tai_code != -1 ]; then tai_mark=0; fi
	echo "tai-stop:$tai_of:found=$tai_found status=$tai_code held=$tai_held unreadable=$tai_unread marker=$tai_mark failed=$1"
	[ $tai_k = $tai_mark ] || command eval 'rm -f $tai_f.mark'
	[ -z "$1" ]
	exit
}
# A fork that fails ends the script.
trap 'tai_say fork' EXIT

# tai_now: tai_t becomes the time in hundredths of a second.
tai_now() {
	read -r tai_t tai_l </proc/uptime
	tai_t=$((${tai_t%.*} * 100 + 1${tai_t#*.} - 100))
}

case $tai_sig in
KILL | TERM | INT | HUP | QUIT | USR1 | USR2) ;;
*) tai_say signal ;;
esac
tai_now
tai_end=$((tai_t + 200))
if [ $tai_sig = KILL ]; then
	[ -e $tai_f.mark ] || echo $((tai_t / 100)) >$tai_f.mark
	[ ! -e $tai_f.mark ] || tai_mark=1
fi

tai_x='' tai_y='' tai_z='' tai_since=''
if [ -f $tai_f.out ]; then tai_record $tai_f.out || tai_x=; fi
if ! tai_number "$tai_z" || ! tai_is /proc/$tai_z; then
	for tai_p in /proc/[0-9]*; do
		if [ -p $tai_p/fd/4 ] && tai_is $tai_p; then break; fi
	done
fi

tai_put=
if [ "$tai_w" ]; then
	# Keeping the fifo open keeps the holder, and so the group's id, in place.
	{ command exec 4<>$tai_w/fd/4; } || tai_say ''
	{ command exec 5<$tai_w/fd/5; } || tai_say ''
	tai_put=/proc/$$/fd/5
elif [ "$tai_x" ] && [ -f $tai_f.status ]; then
	tai_put=$tai_f.status
fi
# tai_alive: is the wrapper there, and not yet a zombie?
tai_alive() { [ "$tai_w" ] && [ -e $tai_w/fd/5 ]; }

while :; do
	[ -z "$tai_put" ] || tai_read $tai_put
	if tai_group; then
		kill -$tai_sig -$tai_pid && tai_found=1
		break
	fi
	if [ $tai_code != -1 ] || ! tai_alive; then break; fi
	tai_now
	[ $tai_t -lt $tai_end ] || tai_say starting
	tai_nap 0.02
done
[ $tai_sig = KILL ] || tai_say ''

# The wrapper writes the status at once, unless it was stopped or killed itself.
tai_fail=
while [ $tai_found = 1 ] && [ $tai_code = -1 ] && [ -z "$tai_fail" ]; do
	tai_now
	if ! tai_alive || [ $tai_t -ge $tai_end ]; then tai_fail=status_unknown; fi
	[ -z "$tai_put" ] || tai_read $tai_put
	if [ $tai_code != -1 ]; then tai_fail=; elif [ -z "$tai_fail" ]; then tai_nap 0.01; fi
done

# Who still holds the output? What is just dying is looked at again.
tai_a=$tai_w/fd/3 tai_b=$tai_w/fd/8 tai_i=0
while :; do
	[ -z "$tai_put" ] || tai_read $tai_put
	[ -z "$tai_done" ] || break
	tai_now
	if tai_alive; then
		tai_scan
		tai_got=$?
		tai_alive || continue
		if [ $tai_got = 0 ] && tai_stat ${tai_h#/proc/} &&
			{ [ $tai_found = 0 ] || [ $tai_pgrp != "$tai_pid" ]; }; then tai_t=$tai_end; fi
	elif [ "$tai_x" ]; then
		tai_ls=$(ls -l /proc/[0-9]*/fd)
		tai_lost
		tai_got=$?
		tai_i=$((tai_i + 1))
		if [ $tai_found = 0 ] || [ $tai_i -gt 5 ]; then tai_t=$tai_end; fi
	else
		break
	fi
	case $tai_got in
	1) break ;;
	esac
	if [ $tai_t -ge $tai_end ]; then
		if [ $tai_got = 0 ]; then tai_held=1; else tai_unread=1 tai_fail=${tai_fail:-unreadable}; fi
		break
	fi
	tai_nap 0.02
done
tai_say "$tai_fail"
