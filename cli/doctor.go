package cli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"caisson/sandbox/docker"
	"caisson/settings"
)

func (p Process) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Check the settings, their files, the engine and the images, and say how to mend what is wrong",
		Long: "Check the settings and the files that they name, the engine, its certificates and networks, the session image and those of the manifest's\n" +
			"tools, and say how to mend what is wrong. Exit status 1 when something fails, 2 when a setting is wrong.",
		Args: usageArgs(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.operate(cmd.Context(), p.doctor)
		},
	}
}

// doctor looks at everything that a server needs and prints what it found.
func (p Process) doctor(ctx context.Context, engine *docker.Provider, s settings.Settings) error {
	files, manifest := p.diagnoseFiles(s)
	findings := slices.Concat(settingFindings(s), files, p.diagnose(ctx, engine, s), diagnoseTools(ctx, engine, manifest))
	colours := settings.IsTerminal(p.Stdout) && !settings.NoColor()
	if _, err := fmt.Fprint(p.Stdout, report(findings, colours)); err != nil {
		return err
	}
	if failed(findings) {
		return errShown
	}
	return nil
}

// settingFindings tells of settings that are right. Wrong ones never get here.
func settingFindings(s settings.Settings) []finding {
	given := 0
	entries := s.Entries()
	for _, e := range entries {
		if e.Source != "default" {
			given++
		}
	}
	findings := []finding{{level: levelOK, name: "settings", detail: fmt.Sprintf("%d from the environment, %d defaults", given, len(entries)-given)}}
	for _, warning := range s.Warnings {
		findings = append(findings, finding{level: levelWarn, name: "settings", detail: warning})
	}
	if !s.Docker.TLSVerify {
		findings = append(findings, finding{
			level: levelWarn, name: "settings", detail: "SANDBOX_DOCKER_TLS_VERIFY is false: the engine is not shown a client certificate",
			mend: "unset it, and set SANDBOX_DOCKER_TLS_CERT_PATH, _KEY_PATH and _CA_PATH",
		})
	}
	return findings
}
