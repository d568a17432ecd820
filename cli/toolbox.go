package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"caisson/executor"
	"caisson/sandbox"
	"caisson/settings"
)

// loadManifest reads the manifest that the settings name; nil without one. The error
// is executor.Faults, or settings.Faults where the file cannot be read.
func (v *serving) loadManifest() (*executor.Manifest, error) {
	name := v.settings.MCP.Manifest
	if name == "" {
		return nil, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, settings.Faults(nil).With(settings.MCPPrefix+"MANIFEST", "cannot be read: "+err.Error())
	}
	defer func() { _ = file.Close() }()
	m, err := executor.ReadManifest(name, file, manifestServer(v.settings, v.environ))
	if err != nil && !errors.As(err, new(executor.Faults)) {
		err = settings.Faults(nil).With(settings.MCPPrefix+"MANIFEST", "cannot be read: "+err.Error())
	}
	return m, err
}

// localWorker is the command line of the worker on this host, where the operator has
// allowed tools there.
func (v *serving) localWorker() ([]string, error) {
	if !v.settings.MCP.AllowLocal {
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	return []string{self, "worker"}, nil
}

// openToolbox starts what runs the manifest's tools, and says what the manifest
// loosens and what this server refuses of it.
func (v *serving) openToolbox(m *executor.Manifest, local []string) {
	v.warnOf(m)
	v.manifest.Store(m)
	v.policies = v.policyNames
	v.reloads = append(v.reloads, reload{name: "the manifest", do: v.reloadManifest})
	v.toolbox = executor.NewToolbox(executor.ToolboxOptions{
		Manager: v.manager, Manifest: m, Owner: sandbox.Owner{Name: v.settings.MCP.Owner}, Log: v.log, Local: local,
	})
}

// policyNames are the execution policies that a principal may have.
func (v *serving) policyNames() []string {
	names := []string{} // never nil, which would mean that they are not known
	for _, p := range v.manifest.Load().Policies() {
		if p.Name != "" {
			names = append(names, p.Name)
		}
	}
	return names
}

// warnOf tells the log of every loosening (D31) and every refusal (D9).
func (v *serving) warnOf(m *executor.Manifest) {
	for _, use := range m.Uses() {
		for _, loosening := range use.Instance.Loosenings {
			if use.Instance.Refusal == "" {
				v.log.Warn("the manifest loosens the hardening of tool containers", "what", use.What, "loosening", loosening)
			}
		}
	}
	for _, refusal := range m.Refusals() {
		v.log.Warn("a part of the manifest is refused", "reason", refusal.String())
	}
}

// reloadManifest reads the manifest again. Where it is wrong the one before stays in
// force, and the error says why.
func (v *serving) reloadManifest(context.Context) error {
	m, err := v.loadManifest()
	if err != nil {
		return err
	}
	v.warnOf(m)
	v.manifest.Store(m)
	v.toolbox.Reload(m)
	return nil
}
