# What wrappers that were killed have left in /tmp. Part of run.sh.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154

# tai_gone FILE: is the wrapper of this .out gone, and its output held by none?
tai_gone() {
	tai_record $1 || return 0
	if tai_stat $tai_z && [ "$tai_start" = "$tai_since" ]; then return 1; fi
	[ "$tai_ls" ] || tai_ls=$(ls -l /proc/[0-9]*/fd)
	tai_lost
	[ $? = 1 ]
}

# tai_late FILE: is this marker young enough for a late wrapper to look for it? It holds
# the seconds of /proc/uptime at which it was made.
tai_late() {
	tai_z=''
	read -r tai_z <$1
	# Not written by a stop: some shells take other texts for 0, which is young on a
	# machine that has just started.
	case $tai_z in '' | *[!0123456789]* | 0?* | ??????????*) return 1 ;; esac
	read -r tai_l tai_y </proc/uptime
	tai_l=${tai_l%.*}
	[ "$tai_z" -le $tai_l ] && [ "$tai_z" -gt $((tai_l - 600)) ]
}

# tai_sweep removes what nothing holds any more, and refuses to run the command when
# something cannot be read or removed. A name that is no plain file was planted and is
# never opened: a fifo would hang us.
tai_sweep() {
	tai_old='' tai_outs='' tai_ls=''
	for tai_q in /tmp/tai-exec.*.out /tmp/tai-exec.*.mark; do
		tai_i=${tai_q#/tmp/tai-exec.}
		tai_i=${tai_i%.*}
		case ${#tai_i}$tai_i in
		32*[!0123456789abcdef]* | "32$tai_id") continue ;;
		32*) ;;
		*) continue ;;
		esac
		if [ -f $tai_q ] && [ ! -h $tai_q ]; then
			if [ ! -r $tai_q ]; then
				[ ! -e $tai_q ] || tai_refuse "cannot read $tai_q"
				continue
			fi
			case $tai_q in
			*.out)
				# Empty: just being written.
				[ -s $tai_q ] || tai_nap 0.1
				tai_gone $tai_q || continue
				;;
			*) ! tai_late $tai_q || continue ;;
			esac
		fi
		case $tai_q in
		*.out)
			for tai_l in pid pid.new fifo status; do tai_old="$tai_old ${tai_q%out}$tai_l"; done
			tai_outs="$tai_outs $tai_q"
			;;
		*) tai_old="$tai_old $tai_q" ;;
		esac
	done
	if [ -z "$tai_old" ]; then return; fi
	# The .out last: the rest is found by it alone.
	{ rm -f $tai_old && { [ -z "$tai_outs" ] || rm -f $tai_outs; }; } && return
	for tai_q in $tai_old $tai_outs; do
		[ ! -e $tai_q ] || tai_refuse "cannot remove $tai_q"
	done
}
