# How file scripts get to a place.
nl='
'
bound= # not empty: nothing outside $base may be touched

# physical puts the kernel's own idea of the working directory into $here. A
# shell's pwd may be what it believes, which a swapped directory makes wrong.
physical() {
	need readlink
	here=$(readlink /proc/self/cwd && echo x) || fail errno
	here=${here%"$nl"x}
}

contained() {
	[ -n "$bound" ] || return 0
	physical
	case $here/ in
	"$base"/*) ;;
	*) fail escapes ;;
	esac
}

# anchor goes to where a path begins: the workspace, which then bounds it, or the root.
anchor() {
	bound=
	if [ "$1" = absolute ]; then
		cd / || fail errno
		return
	fi
	cd -P "$root" || fail errno
	physical
	base=$here
	bound=1
}

# why makes the reason for which a path cannot be reached appear on stderr.
why() {
	cat "$1" </dev/null >/dev/null && fail changed
	fail errno
}

# descend goes down to a directory below the working one.
descend() {
	[ -n "$1" ] || return 0
	cd -P "./$1" 2>/dev/null || why "./$1/."
	contained
}
