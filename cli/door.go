package cli

import (
	"context"
	"errors"
	"slices"
	"sync"

	"caisson/mcp"
	"caisson/principal"
	"caisson/settings"
)

// door is what stands before the HTTP side where there are principals.
type door struct {
	*principal.Door
	keeper *principal.Keeper
}

// openEndpoint reads what the HTTP side needs beside its address: who may call,
// and the certificate it is reached with.
func (v *serving) openEndpoint() error {
	m := v.settings.MCP
	if m.Transport != "http" {
		return nil
	}
	var err error
	if v.certificate, err = openCertificate(m, v.log); err != nil {
		return err
	}
	return v.openDoor()
}

// openDoor reads the file of principals that the settings name. The error is
// principal.Faults, or settings.Faults where the file cannot be read.
func (v *serving) openDoor() error {
	m := v.settings.MCP
	if m.PrincipalsFile == "" {
		return nil
	}
	keeper, err := principal.Open(principal.KeeperOptions{
		File: m.PrincipalsFile, Policies: v.policies, Log: v.log,
		OnGone: func(names []string) { v.server.Cut(names) },
	})
	switch {
	case errors.As(err, new(principal.Faults)):
		return err
	case err != nil:
		return settings.Faults(nil).With(settings.MCPPrefix+"PRINCIPALS_FILE", "cannot be read: "+err.Error())
	}
	o := principal.DoorOptions{Keeper: keeper, PublicURL: m.PublicURL, Log: v.log}
	if m.OIDCIssuer != "" {
		o.Issuer = principal.NewIssuer(principal.IssuerOptions{URL: m.OIDCIssuer, Audience: m.OIDCAudience})
	}
	v.door = &door{principal.NewDoor(o), keeper}
	v.reloads = append(v.reloads, reload{"the file of principals", func(context.Context) error { return keeper.Reload() }, true})
	return nil
}

// admission says in a server's options who may call it.
func (v *serving) admission(o *mcp.Options) {
	o.AllowedHosts, o.RatePerMinute = v.settings.MCP.AllowedHosts, v.settings.MCP.RatePerMinute
	if v.door != nil {
		o.Authenticator, o.Metadata = v.door, v.door.Metadata()
	}
}

// Listed says whether the file names a principal: those are few, and the
// operator's own words.
func (d *door) Listed(name string) bool { return slices.Contains(d.keeper.Book().Names(), name) }

// watch reads the principals again when their file changes, until the returned
// function is called, which waits. At a SIGHUP they are among the server's reloads.
func (d *door) watch(ctx context.Context) (stop func()) {
	if d == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	var work sync.WaitGroup
	work.Go(func() { d.keeper.Watch(ctx, nil) })
	return func() {
		cancel()
		work.Wait()
		d.Close()
	}
}
