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
	*"tai_id='$tai_of'") tai_w=$1 tai_since=$tai_start ;;
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
}

# tai_group: is tai_pid a group that is certainly the command's? Either the holder is
# in it, or its leader is the wrapper's child; with the wrapper gone, its leader began
# when it was recorded to. Where nothing was put down, the leader is looked for.
tai_group() {
	if tai_number "$tai_pid"; then
		if [ -z "$tai_w" ]; then
			tai_stat $tai_pid && [ "$tai_start" = "$tai_born" ] && [ $tai_pgrp = $tai_pid ]
			return
		fi
		if tai_number "$tai_hold" && [ /proc/$tai_hold/fd/0 -ef /proc/$$/fd/4 ] &&
			tai_stat $tai_hold && [ $tai_pgrp = $tai_pid ]; then return 0; fi
	fi
	[ "$tai_w" ] || return 1
	for tai_p in "/proc/$tai_pid" /proc/[0-9]*; do
		if tai_stat "${tai_p#/proc/}" && [ $tai_ppid = ${tai_w#/proc/} ] && [ $tai_pgrp = ${tai_p#/proc/} ]; then
			tai_pid=$tai_pgrp
			return 0
		fi
	done
	return 1
}
