# Lays out a tar below a directory: sh -c SCRIPT NAME ID ROOT ANCHOR PATH [clean]
# The tar on stdin is our own: plain, and ended by a list of sums, which is
# there only if nothing was cut. It is laid out in a stage inside the directory
# and moved from there only when all of it is there and nothing stands in its way.
# With "clean" it only takes away the stage of a run that was killed.
id=$1
root=$2
stage=
done=

# shellcheck disable=SC2329 # run by the trap
clean() {
	cd /
	[ -z "$stage" ] || rm -rf "$stage"
	[ -n "$done" ] || unmake
}
trap 'exit 1' HUP INT TERM PIPE
trap clean EXIT

# conflicts ends the script if something of the stage's directory $1 cannot
# take its place. A link where a directory has to be is never followed.
conflicts() {
	moves=
	for f in "$stage/$1"/* "$stage/$1"/.[!.]* "$stage/$1"/..?*; do
		[ -e "$f" ] || [ -h "$f" ] || continue
		t=./$1/${f##*/}
		if [ -d "$f" ] && [ ! -h "$f" ]; then
			if [ -h "$t" ]; then
				fail link "${t#././}"
			elif [ -d "$t" ]; then
				(conflicts "$1/${f##*/}") || exit 1
				continue
			elif [ -e "$t" ]; then
				fail parent "${t#././}"
			fi
		elif [ -h "$t" ]; then
			: # the link itself gives way
		elif [ -d "$t" ]; then
			fail directory "${t#././}"
		elif [ -f "$t" ]; then
			[ -w "$t" ] || fail denied "${t#././}"
		elif [ -e "$t" ]; then
			fail irregular "${t#././}"
		fi
		moves=1
	done
	[ -z "$moves" ] || [ -w "./$1" ] || fail denied "${1#./}"
}

flush() {
	[ $# -gt 0 ] || return 0
	mv -f "$@" . || fail errno
}

# settle moves the stage's directory $1 into the real one: whole directories
# where there are none yet, else what is in them.
settle() {
	d=$1
	cd -P "./$d" || fail errno
	contained
	set --
	for f in "$stage/$d"/* "$stage/$d"/.[!.]* "$stage/$d"/..?*; do
		[ -e "$f" ] || [ -h "$f" ] || continue
		t=./${f##*/}
		if [ -d "$f" ] && [ ! -h "$f" ] && [ -d "$t" ]; then
			[ ! -h "$t" ] || fail link
			(cd -P "$target" && settle "$d/${f##*/}") || exit 1
			continue
		fi
		set -- "$@" "$f"
		if [ $# -ge 200 ]; then
			flush "$@"
			set --
		fi
	done
	flush "$@"
}

need tar mv rm mkdir readlink
anchor "$3"
if [ "${5-}" = clean ]; then
	descend "$4"
	rm -rf "./.caisson-$id"
	echo OK
	exit 0
fi
make_way "$4"
physical
target=$here
[ -w . ] || fail denied
stage=${target%/}/.caisson-$id
mkdir -m 700 "./.caisson-$id" || fail errno
(cd "./.caisson-$id" && tar -xof -) || fail errno
[ -f "$stage/.caisson-sums" ] || fail cut
if [ -s "$stage/.caisson-sums" ] && has sha256sum; then
	(cd "./.caisson-$id" && sha256sum -c .caisson-sums >/dev/null 2>&1) || fail corrupt
fi
rm -f "$stage/.caisson-sums"
conflicts .
(settle .) || exit 1
done=1
echo OK
