# How file scripts get to a place that may not be there yet.
made=0 # directories that this script has made

# make_way goes down to a directory below the working one and makes what is
# missing. It looks where it is before it makes anything.
make_way() {
	if cd -P "./$1" 2>/dev/null; then
		contained
		return
	fi
	rest=$1/
	while [ -n "$rest" ]; do
		step=${rest%%/*}
		rest=${rest#*/}
		[ -n "$step" ] || continue
		cd -P "./$step" 2>/dev/null && continue
		contained
		make_step
	done
	contained
}

make_step() {
	if [ -d "./$step" ]; then
		fail denied
	elif [ -e "./$step" ]; then
		fail parent
	elif [ -h "./$step" ]; then
		why "./$step/."
	fi
	physical
	need mkdir
	if mkdir "./$step"; then
		made=$((made + 1))
		eval "made_$made=\${here%/}/\$step"
	elif [ ! -d "./$step" ]; then
		fail errno
	fi
	cd -P "./$step" || fail errno
}

# unmake takes back the directories that were made, as far as they are empty.
unmake() {
	while [ "$made" -gt 0 ]; do
		eval "rmdir \"\$made_$made\"" 2>/dev/null
		made=$((made - 1))
	done
}
