# Runs in the throwaway container of the firewall probe. $1 and $2 are numbers whose sum,
# which only a shell that really ran can tell, begins each line of the report. $3 is how
# long a dial may take in seconds, $4 the port that it dials on itself; the rest are the
# addresses that it must not reach, as host,port.
# shellcheck shell=sh
sum=$(($1 + $2)) limit=$3 own=$4
shift 4
for need in nc nslookup timeout sleep; do
	command -v $need >/dev/null || {
		echo "$sum lacks $need"
		exit 1
	}
done
now() {
	read -r up rest </proc/uptime
	echo "$up"
}
# connect HOST PORT: 1 is a connection that was refused or not answered in time; one that
# stands and stays quiet is cut off, and is another number.
connect() { timeout $((limit + 1)) nc -w "$limit" "$1" "$2" </dev/null >/dev/null 2>&1; }
dial() {
	began=$(now)
	connect "${1%,*}" "${1##*,}"
	echo "$sum dial $1 $? $began $(now)"
}
# That nc can connect at all: without it, "not reached" would mean nothing.
self() {
	nc -l -p "$own" </dev/null >/dev/null 2>&1 &
	code=1 tries=0
	while [ $code != 0 ] && [ $tries -lt 40 ]; do
		[ $tries = 0 ] || sleep 0.05
		tries=$((tries + 1))
		began=$(now)
		connect 127.0.0.1 "$own"
		code=$?
	done
	echo "$sum self $code $began $(now)"
	kill $! 2>/dev/null
}
ask() {
	echo "$sum resolver $1"
	timeout $((limit + limit)) nslookup "$sum.invalid" "$1" 2>&1 | while read -r line; do
		echo "$sum dns $line"
	done
}
for target; do dial "$target" & done
self &
while read -r word value rest; do
	if [ "$word" = nameserver ]; then
		ask "$value" &
		break
	fi
done </etc/resolv.conf
wait
echo "$sum end"
