package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/network"
	"github.com/docker/docker/client"
	"github.com/docker/docker/pkg/stdcopy"

	"caisson/wrapper"
)

// raw is the engine without Caisson.
type raw struct {
	api    *client.Client
	config container.Config
	host   container.HostConfig
	user   string // whom commands run as
	box    string // the container that execs and files use
}

// like takes over what Caisson gave to the container of a session, without the
// labels by which it would know the container for its own.
func (r *raw) like(ctx context.Context, session string) error {
	found, err := r.api.ContainerList(ctx, container.ListOptions{Filters: filters.NewArgs(filters.Arg("label", "caisson.id="+session))})
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("%d containers of the session on the engine", len(found))
	}
	inspected, err := r.api.ContainerInspect(ctx, found[0].ID)
	if err != nil {
		return err
	}
	r.config, r.host = *inspected.Config, *inspected.HostConfig
	r.config.Hostname = ""
	user, _, _ := strings.Cut(inspected.Config.Labels["caisson.user"], ":")
	r.user = user
	r.config.Labels = maps.Clone(r.config.Labels)
	maps.DeleteFunc(r.config.Labels, func(name, _ string) bool { return strings.HasPrefix(name, "caisson.") })
	for i := range r.host.Mounts {
		r.host.Mounts[i].VolumeOptions = nil
	}
	r.box, err = r.create(ctx)
	return err
}

// create makes and starts a container.
func (r *raw) create(ctx context.Context) (string, error) {
	made, err := r.api.ContainerCreate(ctx, &r.config, &r.host, &network.NetworkingConfig{}, nil, "")
	if err != nil {
		return "", err
	}
	return made.ID, r.api.ContainerStart(ctx, made.ID, container.StartOptions{})
}

func (r *raw) remove(ctx context.Context, id string) error {
	return r.api.ContainerRemove(ctx, id, container.RemoveOptions{Force: true, RemoveVolumes: true})
}

// exec runs a command that does nothing, reads its output to the end and asks
// for its exit code.
func (r *raw) exec(ctx context.Context) error {
	made, err := r.api.ContainerExecCreate(ctx, r.box, container.ExecOptions{User: r.user, AttachStdout: true, AttachStderr: true, Cmd: []string{"true"}})
	if err != nil {
		return err
	}
	attached, err := r.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	if _, err := io.Copy(io.Discard, attached.Reader); err != nil {
		return err
	}
	return r.exited(ctx, made.ID)
}

func (r *raw) exited(ctx context.Context, exec string) error {
	state, err := r.api.ContainerExecInspect(ctx, exec)
	if err == nil && (state.Running || state.ExitCode != 0) {
		err = errors.New("the command has not exited with 0")
	}
	return err
}

// wrapped is exec of the same command in the wrapper, by the same calls.
func (r *raw) wrapped(ctx context.Context) error {
	id, err := wrapper.NewID()
	if err != nil {
		return err
	}
	command := wrapper.Command{ID: id, Argv: []string{"true"}, Linger: true}
	made, err := r.api.ContainerExecCreate(ctx, r.box, container.ExecOptions{
		User: r.user, AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: command.ExecArgv(),
	})
	if err != nil {
		return err
	}
	attached, err := r.api.ContainerExecAttach(ctx, made.ID, container.ExecAttachOptions{})
	if err != nil {
		return err
	}
	defer attached.Close()
	filter := wrapper.NewFilter(id)
	take := func(s wrapper.Stream) io.Writer {
		return writer(func(p []byte) (int, error) {
			filter.Feed(s, p)
			if !filter.Complete() {
				return len(p), nil
			}
			return len(p), attached.CloseWrite()
		})
	}
	if _, err := stdcopy.StdCopy(take(wrapper.Stdout), take(wrapper.Stderr), attached.Reader); err != nil {
		return err
	}
	return r.exited(ctx, made.ID)
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// put writes a file by the engine's archive call.
func (r *raw) put(ctx context.Context, name string, data []byte) error {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data))})
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	return r.api.CopyToContainer(ctx, r.box, "/workspace", &buf, container.CopyToContainerOptions{})
}

// get reads it back.
func (r *raw) get(ctx context.Context, name string) error {
	stream, _, err := r.api.CopyFromContainer(ctx, r.box, "/workspace/"+name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, stream)
	return errors.Join(err, stream.Close())
}
