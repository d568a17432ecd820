# Reads a piece of a file, or a directory as a tar:
# sh -c SCRIPT NAME ID ROOT ANCHOR PATH UNIT FROM COUNT LIMIT TREE
# UNIT is "bytes" (FROM may be negative: from the end) or "lines" (COUNT of
# them, 0: all). Prints a header, the content, and a trailer with the id: a
# stream that was cut has none. It then waits for the end of its stdin, since
# an engine gives a stream 2 s once the process has ended, however slow the link.
id=$1
root=$2
path=./$4
unit=$5
from=$6
count=$7
limit=$8
tree=$9
block=65536
most_lines=1073741824 # where lines are counted, bytes
most_sum=268435456    # where a sum of the whole is taken, bytes

finish() {
	printf '\n%s %s %s\n' "$id" "$1" "${2:--}"
	read -r _ || :
}

# same_place refuses an open file that a link has led out of the workspace. It
# asks for what was opened, so that nothing can be swapped in between.
same_place() {
	[ -f /proc/self/fd/3 ] || fail irregular
	[ -n "$bound" ] || return 0
	need readlink
	at=$(readlink /proc/self/fd/3 && echo x) || fail errno
	case ${at%"$nl"x} in
	"$base"/*) ;;
	*) fail escapes ;;
	esac
}

# measure sets $size and $mode of the open file: octal, or as ls shows it.
measure() {
	if has stat; then
		found=$(stat -L -c '%a %s' /proc/self/fd/3) || fail errno
		mode=${found%% *}
		size=${found#* }
	else
		need ls
		# shellcheck disable=SC2012 # only mode and size are read from it
		found=$(ls -lnL /proc/self/fd/3 | (read -r mode _ _ _ size _ && echo "$mode $size")) || fail errno
		mode=${found%% *}
		size=${found#* }
	fi
}

header() { printf 'F %s %s %s %s\n' "$size" "$mode" "$1" "$2"; }

# send_bytes prints whole blocks around the piece where dd can seek to them;
# what is too much is cut off by the reader.
send_bytes() {
	off=$from
	[ "$off" -ge 0 ] || off=$((size + off))
	[ "$off" -ge 0 ] || off=0
	if [ "$size" -eq 0 ]; then
		# Files of /proc say nothing of their size and come in short reads.
		if has head && has tail; then
			header "$off" "$off"
			head -c $((off + limit)) <&3 | tail -c +$((off + 1))
		else
			need dd
			header "$off" "$off"
			dd bs=1 skip="$off" count="$limit" <&3 2>/dev/null
		fi
	elif has dd; then
		skip=$((off / block))
		header $((skip * block)) "$off"
		dd bs=$block skip=$skip count=$(((off % block + limit + block - 1) / block)) <&3 2>/dev/null
	elif has tail && has head; then
		header "$off" "$off"
		tail -c +$((off + 1)) <&3 | head -c "$limit"
	else
		[ "$size" -le "$limit" ] || fail missing dd
		header 0 "$off"
		cat <&3
	fi
}

lines() {
	if [ "$count" -gt 0 ]; then
		tail -n +"$from" </proc/self/fd/3 | head -n "$count" | head -c "$limit"
	else
		tail -n +"$from" </proc/self/fd/3 | head -c "$limit"
	fi
}

send_lines() {
	need head tail wc
	[ "$size" -le $most_lines ] || fail large
	off=0
	if [ "$from" -gt 1 ]; then
		off=$(head -n $((from - 1)) </proc/self/fd/3 | wc -c) || fail errno
		off=$((off))
	fi
	header "$off" "$off"
	lines && limit=$(lines | wc -c)
}

whole_sum() {
	sum=
	[ "$off" -gt 0 ] && [ $((off + limit)) -ge "$size" ] && [ "$size" -le $most_sum ] && has sha256sum || return 0
	sum=$(sha256sum </proc/self/fd/3) || sum=
	sum=${sum%% *}
}

send_file() {
	same_place
	measure
	if "send_$unit"; then
		whole_sum
		finish 0 "$sum"
	else
		finish 1
	fi
}

# send_tree stops tar, by the pipe that breaks, once more than a reader takes has come.
send_tree() {
	descend "$1"
	[ -r . ] || fail denied
	need tar head
	printf 'D\n'
	exec 4>&1
	status=$({ { tar -cf - . 3>&-; echo $? >&3; } | head -c "$tree" >&4; } 3>&1)
	finish "${status:-1}"
}

anchor "$3"
if [ -d "$path" ]; then
	send_tree "$4"
elif [ -f "$path" ]; then
	opened=
	{
		opened=1
		send_file
	} 3<"$path"
	[ -n "$opened" ] || fail errno
elif [ -e "$path" ]; then
	fail irregular
else
	why "$path"
fi
