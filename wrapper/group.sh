# Finding a command's wrapper and its process group, distrusting all that is written in
# /tmp. Part of stop.sh.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154,SC3013

# tai_number VALUE: can it be a process to signal? Anyone in the session can write into
# our files: 0, 1 and signs must never get into a kill.
tai_number() {
	case $1 in
	'' | 0* | 1 | *[!0123456789]*) return 1 ;;
	esac
}

# tai_is /proc/PID: is it the wrapper? Only the engine's own children have no parent
# here, and no code of the session can make one.
tai_is() {
	tai_stat ${1#/proc/} && [ $tai_ppid = 0 ] || return 1
	tai_l=
	read -r tai_l <$1/cmdline
	case $tai_l in
	*"tai_id='$tai_of'") tai_w=$1 tai_since=$tai_start tai_wgrp=$tai_pgrp ;;
	*) return 1 ;;
	esac
}

# tai_read FILE: what the command's processes have put down so far.
tai_read() {
	while read -r tai_k tai_l tai_z; do
		case $tai_k in
		h) tai_hold=$tai_l ;;
		p) tai_pid=$tai_l tai_born=$tai_z ;;
		s) tai_code=$tai_l ;;
		e) tai_done=1 ;;
		esac
	done <$1
	case $tai_code in
	[0123456789] | [123456789][0123456789] | [12][0123456789][0123456789]) ;;
	*) tai_code=-1 ;;
	esac
	[ $tai_code -le 255 ] || tai_code=-1
}

# tai_group: is tai_pid a group that is certainly the command's? Either a process in it
# has the wrapper's fifo for stdin, which the holder has, or its leader is the wrapper's
# child. With the wrapper gone, its leader must have begun when it was recorded to.
# Where what was put down leads nowhere, all processes are looked at.
tai_group() {
	if [ -z "$tai_w" ]; then
		tai_number "$tai_pid" && tai_stat $tai_pid && [ "$tai_start" = "$tai_born" ] && [ $tai_pgrp = $tai_pid ]
		return
	fi
	tai_number "$tai_hold" || tai_hold=
	tai_number "$tai_pid" || tai_pid=
	for tai_p in "/proc/$tai_hold" "/proc/$tai_pid" /proc/[0-9]*; do
		if [ "$tai_p" != /proc/ ] && tai_member ${tai_p#/proc/}; then
			tai_pid=$tai_pgrp
			return 0
		fi
	done
	return 1
}
# The wrapper and other stops have the fifo for stdin while they nap.
tai_member() {
	tai_stat $1 || return 1
	if [ $tai_ppid = 0 ] || [ $tai_pgrp = $tai_wgrp ] || ! tai_number $tai_pgrp; then return 1; fi
	[ /proc/$1/fd/0 -ef /proc/$$/fd/4 ] || { [ $tai_ppid = ${tai_w#/proc/} ] && [ $tai_pgrp = $1 ]; }
}
