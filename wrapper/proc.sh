# What run.sh and stop.sh share: reading /proc with builtins alone, since a fork for
# each process there is would cost more than the command.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154,SC3013,SC3045

# tai_stat PID: tai_s becomes the fields of its stat from the state on, tai_ppid,
# tai_pgrp and tai_start three of them. A name may hold spaces, brackets and newlines,
# so all is read and cut at the last bracket; reading to the end also keeps bash from
# handing stale bytes to the next read.
tai_stat() {
	tai_s=
	while IFS= read -r tai_l; do tai_s=$tai_s$tai_l; done <"/proc/$1/stat"
	tai_s=${tai_s##*) }
	[ -n "$tai_s" ] && tai_fields $tai_s
}
tai_fields() { tai_state=$1 tai_ppid=$2 tai_pgrp=$3 tai_start=${20:-0}; }

# tai_uid PID: tai_v becomes its Uid line. The owner of /proc/PID would not do: it
# is root for any process that is not dumpable.
tai_uid() {
	tai_v=
	while read -r tai_k tai_l; do
		[ "$tai_k" != Uid: ] || tai_v=$tai_l
	done <"/proc/$1/status"
}

# tai_holds /proc/PID: 0 when it has an end of the pipes tai_a and tai_b, 1 when not,
# 2 when that cannot be read and it could. A process in the middle of an exec can not be
# read for a moment, between any two tests of ours, so what looks odd is looked at again.
tai_holds() {
	for tai_o in 1 2 3; do
		tai_r=2 tai_odd=
		[ -r "$1/fd" ] || break
		for tai_d in "$1"/fd/*; do
			if [ -p "$tai_d" ] && { [ "$tai_d" -ef "$tai_a" ] || [ "$tai_d" -ef "$tai_b" ]; }; then return 0; fi
			[ -e "$tai_d" ] || tai_odd=$tai_d
		done
		[ "$tai_odd" ] || return 1
		# Still in the list it is unreadable, else it was closed or there are none.
		[ -h "$tai_odd" ] || tai_r=1
	done
	tai_could "$1"
}

# tai_could /proc/PID: tai_holds for one that shows no files. It could hold when it is
# of our uid, is no zombie, is not older than tai_since, and was not started by the
# engine (an exec that just starts looks unreadable). A dead main thread may have live
# threads that hold.
tai_could() {
	tai_stat "${1#/proc/}" || return 1
	if [ "$tai_start" -lt "$tai_since" ] || [ "$tai_ppid" = 0 ]; then return 1; fi
	case $tai_state in
	Z | X)
		tai_r=1
		for tai_t in "$1"/task/*; do
			if [ "${tai_t##*/}" = "${1#/proc/}" ] || [ ! -e "$tai_t" ]; then continue; fi
			[ -r "$tai_t/fd" ] || tai_r=2
			for tai_d in "$tai_t"/fd/*; do
				if [ "$tai_d" -ef "$tai_a" ] || [ "$tai_d" -ef "$tai_b" ]; then return 0; fi
			done
		done
		;;
	esac
	[ $tai_r = 2 ] || return 1
	[ "$tai_me" ] || { tai_uid $$ && tai_me=$tai_v; }
	tai_uid "${1#/proc/}"
	[ "$tai_v" != "$tai_me" ] || return 2
	return 1
}

# tai_scan: 0 when a process holds the output, 2 when one could, 1 when none does;
# tai_h is that process. We keep it by right, the wrapper (tai_w) too, and its helpers.
# When processes came or went meanwhile, one may have been missed: look again, but not
# for ever.
tai_scan() {
	for tai_n in 1 2 3; do
		set -- /proc/[0-9]*
		tai_all=$* tai_h=
		for tai_p in "$@"; do
			if [ "$tai_p" = "/proc/$$" ] || [ "$tai_p" = "$tai_w" ]; then continue; fi
			tai_holds "$tai_p"
			case $? in
			0)
				if [ "$tai_w" ] && tai_stat "${tai_p#/proc/}" && [ "$tai_ppid" = "${tai_w#/proc/}" ]; then continue; fi
				tai_h=$tai_p
				return 0
				;;
			2) tai_h=$tai_p ;;
			esac
		done
		[ -z "$tai_h" ] || return 2
		set -- /proc/[0-9]*
		[ "$tai_all" != "$*" ] || break
	done
	return 1
}

# tai_record FILE: reads a .out, into tai_x and tai_y the names of the pipes, into tai_z
# and tai_since the wrapper's pid and start. Fails when it is not as we write it.
tai_record() {
	tai_x='' tai_y='' tai_z='' tai_since=''
	{
		read -r tai_x
		read -r tai_y
		read -r tai_z tai_since
	} <"$1"
	case $tai_z-$tai_since in
	-* | *- | *[!0123456789-]*) return 1 ;;
	esac
	case $tai_x+$tai_y in
	'pipe:['*']+pipe:['*']') ;;
	*) return 1 ;;
	esac
}

# tai_lost: tai_scan for the wrapper of the record that was read, which is gone, so that
# only the names of its pipes are left to compare with: tai_ls is the text of an
# "ls -l /proc/[0-9]*/fd".
tai_lost() {
	[ "$tai_ls" ] || return 2
	case $tai_ls in
	*"$tai_x"* | *"$tai_y"*) return 0 ;;
	esac
	tai_a=/ tai_b=/
	tai_scan
}

# tai_nap SECONDS, on the fifo where the shell can, without a fork; else (no such
# option, no fifo, a line in it) with sleep. "command eval" keeps a fork that fails
# from ending the script.
tai_nap() {
	if [ -p "/proc/$$/fd/4" ]; then read -r -t "$1" tai_l <&4; fi
	case $? in
	0 | 2) command eval "sleep $1" ;;
	esac
}
