package cli

import (
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"caisson/executor"
	"caisson/principal"
	"caisson/sandbox/docker"
	"caisson/settings"
)

// renewSoon is how long before its end the endpoint's certificate is worth a warning: as
// long as for the engine's.
const renewSoon = 14 * 24 * time.Hour

// diagnoseFiles reads the files that the settings name beside the engine's, as serve
// would, whatever the transport: the command line may choose it. The manifest is nil where
// there is none or it is at fault.
func (p Process) diagnoseFiles(s settings.Settings) ([]finding, *executor.Manifest) {
	v := &serving{settings: s, environ: p.Environ, log: slog.New(slog.DiscardHandler)}
	var findings []finding
	m, err := v.loadManifest()
	if s.MCP.Manifest != "" {
		findings = append(findings, manifestFindings(s.MCP.Manifest, m, err)...)
	}
	if err == nil && m != nil {
		v.manifest.Store(m)
		v.policies = v.policyNames
	} else {
		m = nil
	}
	if s.MCP.PrincipalsFile != "" {
		findings = append(findings, principalsFinding(s.MCP.PrincipalsFile, v.policies))
	}
	if s.MCP.TLSCertPath != "" {
		findings = append(findings, certificateFinding(s.MCP, v.log))
	}
	return findings, m
}

// manifestFindings tells whether a manifest is right, and what a server would warn of.
func manifestFindings(file string, m *executor.Manifest, err error) []finding {
	const name = "manifest"
	if err != nil {
		return []finding{{levelFail, name, sentence(err), "mend the file, or change SANDBOX_MCP_MANIFEST; docs/manifest.md has its keys"}}
	}
	findings := []finding{{level: levelOK, name: name, detail: fmt.Sprintf("%s: %d tools, %d toolkits, %d agents", file, len(m.Tools), len(m.Toolkits), len(m.Agents))}}
	for _, refusal := range m.Refusals() {
		findings = append(findings, finding{levelWarn, name, refusal.String(), "change the rule or the setting that it names: docs/policy.md"})
	}
	for _, u := range m.Uses() {
		for _, loosening := range u.Instance.Loosenings {
			if u.Instance.Refusal == "" {
				findings = append(findings, finding{level: levelWarn, name: name, detail: u.What + " loosens the hardening: " + loosening})
			}
		}
	}
	return findings
}

// principalsFinding tells whether a file of principals lets anybody in.
func principalsFinding(file string, policies func() []string) finding {
	f := finding{level: levelFail, name: "principals", mend: "mend the file, or change SANDBOX_MCP_PRINCIPALS_FILE; docs/principals.md has its keys"}
	keeper, err := principal.Open(principal.KeeperOptions{File: file, Policies: policies, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		f.detail = sentence(err)
		return f
	}
	f.level, f.mend, f.detail = levelOK, "", fmt.Sprintf("%s: %d", file, len(keeper.Book().Names()))
	if info, err := os.Stat(file); err == nil && principal.Loose(info.Mode()) {
		f.level, f.mend = levelWarn, "chmod 0640 or less"
		f.detail += fmt.Sprintf(", mode %04o: open to more than its owner and group", info.Mode().Perm())
	}
	return f
}

// certificateFinding tells whether the endpoint's certificate can be used, and until when.
func certificateFinding(m settings.MCP, log *slog.Logger) finding {
	f := finding{level: levelFail, name: "endpoint's certificate", mend: "see that SANDBOX_MCP_TLS_CERT_PATH, _KEY_PATH and _CLIENT_CA_PATH name PEM files that this user may read"}
	c, err := openCertificate(m, log)
	if err != nil {
		f.detail = sentence(err)
		return f
	}
	leaf, err := x509.ParseCertificate(c.config.Certificates[0].Certificate[0])
	if err != nil {
		f.detail = err.Error()
		return f
	}
	f.detail = "valid until " + leaf.NotAfter.UTC().Format(time.DateOnly)
	switch left := time.Until(leaf.NotAfter); {
	case left < 0:
		f.mend = "renew it; a new one is read without a restart"
	case left < renewSoon:
		f.level, f.mend = levelWarn, "renew it; a new one is read without a restart"
	default:
		f.level, f.mend = levelOK, ""
	}
	return f
}

// diagnoseTools looks for the images that the manifest's tools run in. Of an engine that
// does not answer nothing is said here.
func diagnoseTools(ctx context.Context, engine *docker.Provider, m *executor.Manifest) []finding {
	if m == nil || engine.Ping(ctx) != nil {
		return nil
	}
	type need struct{ image, policy string }
	var needs []need
	for _, u := range m.Uses() {
		n := need{u.Instance.Options.Image, u.Instance.Options.PullPolicy}
		if u.Instance.Executor == executor.Docker && u.Instance.Refusal == "" && !slices.Contains(needs, n) {
			needs = append(needs, n)
		}
	}
	slices.SortFunc(needs, func(a, b need) int { return cmp.Or(cmp.Compare(a.image, b.image), cmp.Compare(a.policy, b.policy)) })
	var findings []finding
	for _, n := range needs {
		c := engine.DiagnoseToolImage(ctx, n.image, docker.PullPolicy(n.policy))
		findings = append(findings, finding{level: levelOf(c), name: c.Name, detail: c.Detail, mend: c.Mend})
	}
	return findings
}
