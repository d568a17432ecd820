package docker

import (
	_ "embed"
	"encoding/json"
	"os"
)

//go:generate sh -c "go run ./internal/seccomp > seccomp.json.new && mv seccomp.json.new seccomp.json"

// builtinSeccomp is our own profile (D20): the engine project's published
// default without io_uring, without reading other processes' memory and with
// the socket families UNIX, INET, INET6 and NETLINK's routing alone. It travels
// with each create, since an old engine's default lets several of these through.
//
//go:embed seccomp.json
var builtinSeccomp []byte

const seccompSetting = "SANDBOX_DOCKER_SECCOMP_PROFILE"

// seccompOption gives the security option for a value of
// SANDBOX_DOCKER_SECCOMP_PROFILE: builtin, engine (none: the engine's own
// default) or the path of a profile.
func seccompOption(setting string) (string, error) {
	switch setting {
	case "", "builtin":
		return compactSeccomp(builtinSeccomp)
	case "engine":
		return "", nil
	}
	profile, err := os.ReadFile(setting)
	if err != nil {
		return "", badSetting(seccompSetting, "is builtin, engine or the path of a profile: %s", loadFailure(err))
	}
	return compactSeccomp(profile)
}

func compactSeccomp(profile []byte) (string, error) {
	var parsed struct {
		DefaultAction string          `json:"defaultAction"`
		Syscalls      json.RawMessage `json:"syscalls"`
	}
	if err := json.Unmarshal(profile, &parsed); err != nil || parsed.DefaultAction == "" {
		return "", badSetting(seccompSetting, "names a file that is no seccomp profile")
	}
	return "seccomp=" + string(profile), nil
}
