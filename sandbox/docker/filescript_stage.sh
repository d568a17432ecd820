# Puts the content of one of several files into the stage, for images without
# tar: sh -c SCRIPT NAME ID ROOT NUMBER
id=$1
root=$2
i=$3
stage=$root/.caisson-$id
[ -w "$root" ] || stage=/tmp/.caisson-$id
need mkdir
[ -d "$stage" ] || mkdir -m 700 "$stage" || fail errno
cat >"$stage/$i" || fail errno
echo OK
