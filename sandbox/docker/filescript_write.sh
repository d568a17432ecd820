# Writes files: sh -c SCRIPT NAME ID ROOT FROM {ANCHOR PATH HOW MODE SIZE SUM BEFORE}...
# FROM says where the contents are: "stdin" (of the one file), "tar" (on stdin,
# members 1, 2, ...), "staged" (put into the stage by earlier execs) or "clean",
# which only takes away what a run that was killed has left.
# Every file is whole and checked beside its target before the first one is
# put in place.
id=$1
root=$2
from=$3
shift 3
count=0 # files that are staged
undo=0  # files in place, which go back if a later one fails
done=

stage=$root/.caisson-$id
[ -w "$root" ] || stage=/tmp/.caisson-$id

# shellcheck disable=SC2329 # run by the trap
clean() {
	if [ -z "$done" ] && [ "$count" -gt 1 ]; then retreat; fi
	n=0
	while [ "$n" -lt "$count" ]; do
		n=$((n + 1))
		eval "dir=\${dir_$n-}"
		[ -z "$dir" ] || rm -f "$dir/.caisson-$id.$n" "$dir/.caisson-$id.$n.old"
	done
	[ "$from" = stdin ] || rm -rf "$stage"
	[ -n "$done" ] || unmake
}
trap 'exit 1' HUP INT TERM PIPE
trap clean EXIT

# size_of does not open the file: its mode may keep even its owner from reading.
size_of() {
	if has stat; then
		size=$(stat -c %s "$1") || fail errno
	else
		need ls
		# shellcheck disable=SC2012 # only the size is read from it
		size=$(ls -ln "$1" | (read -r _ _ _ _ n _ && echo "$n")) || fail errno
	fi
}

# mode_of puts the permission bits of ./$name into $mode, in a form for chmod.
mode_of() {
	if has stat; then
		mode=$(stat -c %a "./$name") || fail errno
		[ ${#mode} -le 3 ] || mode=${mode#"${mode%???}"}
		return
	fi
	need ls
	# shellcheck disable=SC2012 # only the mode is read from it
	bits=$(ls -ld "./$name") || fail errno
	bits=${bits#?}
	mode=
	for who in u g o; do
		three=${bits%"${bits#???}"}
		bits=${bits#???}
		mode=$mode,$who=
		case $three in r??) mode=${mode}r ;; esac
		case $three in ?w?) mode=${mode}w ;; esac
		case $three in ??[xst]) mode=${mode}x ;; esac
	done
	mode=${mode#,}
}

# follow replaces $name by what it is a link to, so that a write goes through
# the link and leaves it there.
follow() {
	hops=0
	while [ -h "./$name" ]; do
		hops=$((hops + 1))
		[ "$hops" -le 40 ] || why "./$name"
		link=$(readlink "./$name" && echo x) || fail errno
		link=${link%"$nl"x}
		name=${link##*/}
		case $link in
		/*) cd / || fail errno ;;
		esac
		case $link in
		*/*) cd -P "./${link%/*}" 2>/dev/null || why "./${link%/*}/." ;;
		esac
	done
	contained
}

# enter goes to the directory of a path, by descend or make_way, and sets $name
# to the file in it.
enter() {
	anchor "$1"
	name=${2##*/}
	case $2 in
	*/*) "$3" "${2%/*}" ;;
	esac
	follow
}

check_target() {
	if [ -d "./$name" ]; then
		fail directory
	elif [ -f "./$name" ]; then
		[ -w "./$name" ] || fail denied
	elif [ -e "./$name" ]; then
		fail irregular
	fi
	[ -w . ] || fail denied
}

receive() {
	if [ "$from" = stdin ]; then
		(set -C && cat >"./$tmp") || fail errno
	else
		mv "$stage/$i" "./$tmp" || fail errno
	fi
	size_of "./$tmp"
	[ "$size" -eq "$want" ] || fail cut "$size"
	if has sha256sum; then
		got=$(sha256sum <"./$tmp") || fail errno
		[ "${got%% *}" = "$sum" ] || fail corrupt
	fi
}

# prepare stages one file: resolved, allowed, received, checked, its mode set.
prepare() {
	enter "$1" "$2" make_way
	how=$3 mode=$4 want=$5 sum=$6
	check_target
	before=0
	if [ "$how" = append ] && [ -e "./$name" ]; then
		size_of "./$name"
		before=$size
	fi
	[ -z "$7" ] || [ "$7" -eq "$before" ] || fail size "$before"
	physical
	eval "dir_$i=\$here name_$i=\$name how_$i=\$how mode_$i=\$mode before_$i=\$before bound_$i=\$bound"
	tmp=.caisson-$id.$i
	receive
	if [ -z "$mode" ]; then
		if [ -e "./$name" ]; then mode_of; else mode=644; fi
	fi
	# The umask has made it 644 already, for images without chmod.
	[ "$mode" = 644 ] && ! has chmod && return
	need chmod
	chmod "$mode" "./$tmp" || fail errno
}

# place puts a staged file where it belongs. With -T, mv does not move it into a
# directory that has taken the name meanwhile.
place() {
	eval "dir=\$dir_$i name=\$name_$i how=\$how_$i before=\$before_$i bound=\$bound_$i mode=\$mode_$i"
	cd -P "$dir" || fail errno
	contained
	tmp=.caisson-$id.$i
	if [ "$how" = append ] && [ -e "./$name" ]; then
		append
	else
		[ "$count" -eq 1 ] || keep
		# shellcheck disable=SC2086 # nothing or -T
		mv -f $exact "./$tmp" "./$name" || fail errno
		if [ -d "./$name" ]; then
			rm -f "./$name/$tmp"
			fail changed
		fi
	fi
	undo=$i
	size_of "./$name"
	eval "size_$i=\$size"
}

# append adds to a file that it has opened, after a look at what that is: the
# name may have become a link since it was followed.
append() {
	opened=
	{
		opened=1
		[ -f /proc/self/fd/9 ] || fail changed
		if [ -n "$bound" ]; then
			at=$(readlink /proc/self/fd/9 && echo x) || fail errno
			case ${at%"$nl"x} in
			"$base"/*) ;;
			*) fail escapes ;;
			esac
		fi
		cat "./$tmp" >&9 || shorten
	} 9>>"./$name"
	[ -n "$opened" ] || fail errno
	[ -z "$mode" ] || chmod "$mode" "./$name" || fail errno
}

# shorten takes back what did not fit.
shorten() {
	if has truncate; then
		truncate -s "$before" /proc/self/fd/9
	elif has dd; then
		dd if=/dev/null of=/proc/self/fd/9 bs=1 seek="$before" 2>/dev/null
	else
		fail partial
	fi
	fail errno
}

# keep holds on to what one of several files replaces until all are in place.
keep() {
	eval "new_$i=1"
	[ -e "./$name" ] || return 0
	eval "new_$i="
	! has ln || ln "./$name" "./$tmp.old" || fail errno
}

retreat() {
	while [ "$undo" -gt 0 ]; do
		eval "dir=\$dir_$undo name=\$name_$undo new=\$new_$undo"
		old=$dir/.caisson-$id.$undo.old
		if [ -f "$old" ]; then
			mv -f "$old" "$dir/$name"
		elif [ -n "$new" ]; then
			rm -f "$dir/$name"
		fi
		undo=$((undo - 1))
	done
}

if [ "$from" = clean ]; then
	while [ $# -ge 7 ]; do
		i=$((i + 1))
		(enter "$1" "$2" descend && rm -f "./.caisson-$id.$i" "./.caisson-$id.$i.old") >/dev/null 2>&1
		shift 7
	done
	echo OK
	exit 0
fi
need mv rm cat readlink
if [ "$from" = tar ]; then
	need tar mkdir
	mkdir -m 700 "$stage" || fail errno
	(cd "$stage" && tar -xof -) || fail errno
fi
while [ $# -ge 7 ]; do
	i=$((i + 1))
	count=$i
	prepare "$1" "$2" "$3" "$4" "$5" "$6" "$7"
	shift 7
done
exact=
case $(mv --help 2>&1) in
*-T* | *-finT*) exact=-T ;;
esac
i=0
while [ "$i" -lt "$count" ]; do
	i=$((i + 1))
	place
done
done=1
i=0
while [ "$i" -lt "$count" ]; do
	i=$((i + 1))
	eval "echo \"W \$size_$i\""
done
echo OK
