# Lists a directory: sh -c SCRIPT NAME ID ROOT ANCHOR PATH DEPTH MOST
# DEPTH is "one" or "all", MOST the bytes after which the listing is cut. An
# entry is "TYPE MODE SIZE MTIME", its path and its link's target, each ended
# by NUL, since a name may hold anything else; TYPE x means that MODE is the
# kernel's, in hex.
id=$1
root=$2
path=$4
depth=$5
most=$6

# One stat tells of many files, but without their names: when one is gone and
# the lines do not match the files, they are asked for one by one.
# shellcheck disable=SC2016 # expanded by the sh that runs it
batch='
nl="
"
one() {
	target=
	if [ -h "$2" ]; then
		target=$(readlink "$2" && echo x) || target=x
		target=${target%x}
		target=${target%"$nl"}
	fi
	printf "x %s\0%s\0%s\0" "$1" "${2#./}" "$target"
}
found=$(stat -c "%f %s %Y" "$@" 2>/dev/null)
rest=$found$nl
n=0
while [ -n "$rest" ]; do
	rest=${rest#*"$nl"}
	n=$((n + 1))
done
if [ $n -eq $# ]; then
	rest=$found$nl
	for f; do
		one "${rest%%"$nl"*}" "$f"
		rest=${rest#*"$nl"}
	done
else
	for f; do
		line=$(stat -c "%f %s %Y" "$f" 2>/dev/null) && one "$line" "$f"
	done
fi
'

cut() {
	if has head; then
		head -c "$most"
	else
		dd bs=512 count=$((most / 512)) 2>/dev/null
	fi
}

gnu_find() {
	case $(find . -maxdepth 0 -printf '%y %T@ %P%l' 2>/dev/null) in
	'd '[0-9]*) return 0 ;;
	*) return 1 ;;
	esac
}

list() {
	deep=
	[ "$depth" = all ] || deep='-maxdepth 1'
	if ! has find; then
		set --
		for f in ./* ./.[!.]* ./..?*; do
			if [ -e "$f" ] || [ -h "$f" ]; then set -- "$@" "$f"; fi
		done
		[ $# -eq 0 ] || (eval "$batch")
	elif [ -n "$gnu" ]; then
		# shellcheck disable=SC2086 # nothing or two words
		find . -mindepth 1 $deep -printf '%y %m %s %T@\0%P\0%l\0'
	else
		# shellcheck disable=SC2086 # nothing or two words
		find . -mindepth 1 $deep -exec sh -c "$batch" sh {} +
	fi
}

anchor "$3"
descend "$path"
[ -r . ] || fail denied
gnu=
if gnu_find; then
	gnu=1
elif [ "$depth" = all ]; then
	need find stat
else
	need stat
fi
has head || need dd
printf 'L\n'
list 2>/dev/null | cut
printf '\n%s 0 -\n' "$id"
read -r _ || :
