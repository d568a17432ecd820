# The head of every file script. A session may have planted a cat of its own
# and may carry settings for tar or ls in its environment: neither is used.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
unset CDPATH IFS TAR_OPTIONS POSIXLY_CORRECT QUOTING_STYLE TIME_STYLE BLOCK_SIZE
umask 022
i=0 # the file being worked on, for reports

has() { command -v "$1" >/dev/null 2>&1; }

# fail ends the script with a report: what is wrong, with which file, and a detail.
# "errno" leaves the reason to what a command has just said on stderr.
fail() {
	printf 'E %s %s %s\n' "$1" "$i" "${2-}"
	exit 1
}

need() {
	for cmd in "$@"; do
		has "$cmd" || fail missing "$cmd"
	done
}
