package docker

import (
	"context"
	"slices"
	"strings"

	"caisson/sandbox"
)

// hardening is the part of a container's hardening that an operator's manifest may change
// (D31). Everybody else gets that of hardened.
type hardening struct {
	capDrop     []string
	securityOpt []string
	allOfProc   bool // nothing of /proc and /sys is masked or read-only
}

const (
	everyCapability = "ALL"
	noNewPrivileges = "no-new-privileges"
)

// hardened is what a container has that no operator has said anything about. seccomp is
// the whole security option; empty: the engine's default profile.
func hardened(seccomp string) hardening {
	h := hardening{capDrop: []string{everyCapability}, securityOpt: []string{noNewPrivileges}}
	if seccomp != "" {
		h.securityOpt = append(h.securityOpt, seccomp)
	}
	return h
}

// hardening is what an operator has chosen; nil where there is none. Options that the
// engine would not enforce are KindRejected: it takes the name of a profile without a word
// where it has nothing that could load one.
func (p *Provider) hardening(ctx context.Context, o *sandbox.OperatorSpec) (*hardening, error) {
	if o == nil {
		return nil, nil
	}
	h := &hardening{capDrop: slices.Clone(o.CapDrop)}
	own := p.seccomp
	for _, entry := range o.SecurityOpt {
		name, value := sandbox.SecurityOption(entry)
		switch name {
		case noNewPrivileges:
			h.securityOpt = append(h.securityOpt, strings.TrimSuffix(name+"="+value, "="))
		case "seccomp":
			option, err := operatorSeccomp(value)
			if err != nil {
				return nil, err
			}
			own = option
		case "systempaths":
			if value != "unconfined" {
				return nil, sandbox.Rejected("security_opt", "systempaths takes unconfined and nothing else")
			}
			h.allOfProc = true
		case "apparmor", "label":
			if err := p.enforces(ctx, name); err != nil {
				return nil, err
			}
			h.securityOpt = append(h.securityOpt, name+"="+value)
		default:
			return nil, sandbox.Rejected("security_opt", "there is no security option of that name")
		}
	}
	if own != "" {
		h.securityOpt = append(h.securityOpt, own)
	}
	return h, nil
}

// operatorSeccomp is the option for a value of seccomp=: unconfined, or what
// SANDBOX_DOCKER_SECCOMP_PROFILE takes.
func operatorSeccomp(value string) (string, error) {
	if value == "unconfined" {
		return "seccomp=unconfined", nil
	}
	option, err := seccompOption(value)
	if err != nil {
		return "", sandbox.Rejected("security_opt", "seccomp takes unconfined, builtin, engine, or the path of a profile that this server can read").Because(err)
	}
	return option, nil
}

// enforces refuses a security module that the engine has not.
func (p *Provider) enforces(ctx context.Context, option string) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	info, err := p.api.Info(ctx)
	if err != nil {
		return p.failed("ask the engine for its security modules", err)
	}
	module := map[string]string{"apparmor": "apparmor", "label": "selinux"}[option]
	if !slices.ContainsFunc(info.SecurityOptions, func(o string) bool { return strings.Contains(o, "name="+module) }) {
		return sandbox.Rejected("security_opt", "the engine has no %s, and would not enforce %s", module, option)
	}
	return nil
}

// runtime is the OCI runtime of a spec's container; empty for the engine's own. An
// operator's choice does not get a container out of a floor of isolation.
func (p *Provider) runtime(spec sandbox.Spec) (string, error) {
	asked := ""
	if spec.Operator != nil {
		asked = spec.Operator.Runtime
	}
	switch {
	case spec.Isolation != sandbox.IsolationVM && asked != "":
		return asked, nil
	case spec.Isolation != sandbox.IsolationVM:
		return p.cfg.Runtime, nil
	case p.cfg.VMRuntime == "":
		return "", sandbox.Rejected("isolation", "this server has no runtime that isolates by a virtual machine")
	case asked != "" && asked != p.cfg.Runtime && asked != p.cfg.VMRuntime:
		return "", sandbox.Rejected("runtime", "the runtime does not isolate by a virtual machine as far as this server's settings tell, and isolation vm is its floor")
	}
	return p.cfg.VMRuntime, nil
}

// pullPolicy and asUser are the operator's, where there is one who has said so.
func (p *Provider) pullPolicy(o *sandbox.OperatorSpec) PullPolicy {
	if o != nil && o.PullPolicy != "" {
		return PullPolicy(o.PullPolicy)
	}
	return p.cfg.PullPolicy
}

func asUser(img engineImage, o *sandbox.OperatorSpec) engineImage {
	if o != nil {
		img.asked = o.User
	}
	return img
}
