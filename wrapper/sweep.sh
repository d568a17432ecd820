# What wrappers that were killed have left in /tmp. Part of run.sh.
# shellcheck shell=sh disable=SC2034,SC2086,SC2154

# tai_gone FILE: is the wrapper of this .out gone, and its output held by none?
tai_gone() {
	tai_x='' tai_y='' tai_z='' tai_since=''
	{
		read -r tai_x
		read -r tai_y
		read -r tai_z tai_since
	} <$1
	case $tai_z-$tai_since in
	-* | *- | *[!0123456789-]*) return 0 ;;
	esac
	if tai_stat $tai_z && [ "$tai_start" = "$tai_since" ]; then return 1; fi
	tai_lost "$tai_x" "$tai_y" $tai_since
	[ $? = 1 ]
}

# tai_late FILE: is this marker young enough for a late wrapper to look for it?
tai_late() {
	tai_z=''
	read -r tai_z <$1
	read -r tai_l tai_y </proc/uptime
	case $tai_z in
	'' | *[!0123456789]*) return 1 ;;
	esac
	[ $((${tai_l%.*} - tai_z)) -lt 600 ]
}

# tai_sweep removes what nothing holds any more, and refuses to run the command when
# something cannot be read or removed. A name that is no plain file was planted and is
# never opened: a fifo would hang us.
tai_sweep() {
	tai_old=
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
		*.out) for tai_l in pid pid.new fifo status; do tai_old="$tai_old ${tai_q%out}$tai_l"; done ;;
		esac
		tai_old="$tai_old $tai_q"
	done
	[ -z "$tai_old" ] || rm -f $tai_old || tai_refuse "cannot remove$tai_old"
}
