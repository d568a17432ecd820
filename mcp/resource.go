package mcp

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"path"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/sandbox"
)

// resourceScheme begins the address of a file in a session. There is one
// template for it alone: of two that match, mcp-go takes a random one.
const (
	resourceScheme = "sandbox://"
	fileTemplate   = resourceScheme + "{session_id}/{+path}"
)

func (s *Server) addResources() {
	s.mcp.AddResourceTemplate(mcpgo.NewResourceTemplate(fileTemplate, "Sandbox file",
		mcpgo.WithTemplateDescription("A file in a sandbox session, relative to its workspace; two slashes after the session for an absolute path. Up to 8 MiB."),
	), s.readResource)
}

// readResource reads a file by its address. Unlike a tool it can only answer an
// error in the protocol's form, so the error is made of our sentence alone.
func (s *Server) readResource(ctx context.Context, request mcpgo.ReadResourceRequest) (contents []mcpgo.ResourceContents, err error) {
	c := s.beginCall(ctx, toolResourceRead, len(request.Params.URI))
	var bytesOut int64
	defer func() {
		if fault := recover(); fault != nil {
			s.log.Error("panic in a resource", "request_id", c.id, "panic", panicText(fault), "stack", string(debug.Stack()))
			err = sandbox.Errorf("read resource", sandbox.KindInternal, "panic").Because(errors.New("panic: " + panicText(fault)))
		}
		code := "ok"
		if err != nil {
			f := failureOf(err, c.id, s.log)
			contents, err, code = nil, errors.New(codedSentence(rpcCode(ctx, sandbox.KindOf(err)), map[string]any{"uri": request.Params.URI}, escape(f.Error()))), f.code
		}
		for _, content := range contents {
			bytesOut += resourceBytes(content)
		}
		s.conclude(ctx, c, code, bytesOut)
	}()
	c.refused = true
	if s.setup != nil {
		return nil, setupFailure(s.setup)
	}
	if !c.mayUse("download") { // which it is another way to do
		return nil, sandbox.Errorf("read resource", sandbox.KindPermission, "this principal may not read files")
	}
	id, file, err := parseResource(request.Params.URI)
	if err != nil {
		return nil, err
	}
	ctx, leave, err := s.calls.enter(ctx, c.key(), c.principalName(), false)
	if err != nil {
		return nil, err
	}
	defer leave()
	c.refused = false
	ctx, cancel := context.WithTimeout(ctx, s.callLimit)
	defer cancel()
	fit, err := roomForAnswer(ctx, sandbox.FilePieceLimit)
	if err != nil {
		return nil, err
	}
	var content sandbox.FileContent
	err = s.inSession(c, target{id: id}, func(session sandbox.Session) (err error) {
		content, err = session.ReadFile(ctx, sandbox.FileRead{Path: file, Limit: sandbox.FilePieceLimit})
		return err
	})
	fit(int64(len(content.Content)))
	switch {
	case err != nil:
		return nil, err
	case content.Dir:
		return nil, sandbox.Errorf("read resource", sandbox.KindIsDirectory, "it is a directory; use list_files or download")
	case !content.EOF:
		return nil, sandbox.Errorf("read resource", sandbox.KindTooLarge, "the file has %d bytes; download reads it in pieces", content.Size)
	}
	return []mcpgo.ResourceContents{resourceContents(request.Params.URI, content)}, nil
}

func resourceContents(uri string, file sandbox.FileContent) mcpgo.ResourceContents {
	mime := http.DetectContentType(file.Content)
	if utf8.Valid(file.Content) {
		return mcpgo.TextResourceContents{URI: uri, MIMEType: mime, Text: string(file.Content)}
	}
	return mcpgo.BlobResourceContents{URI: uri, MIMEType: mime, Blob: base64.StdEncoding.EncodeToString(file.Content)}
}

// parseResource takes an address apart. The path is cleaned here; whether it
// stays in the workspace is checked where every path is.
func parseResource(uri string) (session, file string, err error) {
	rest, ok := strings.CutPrefix(uri, resourceScheme)
	session, escaped, found := strings.Cut(rest, "/")
	file, unescapeErr := url.PathUnescape(escaped)
	if !ok || !found || session == "" || file == "" || unescapeErr != nil || strings.ContainsRune(file, 0) {
		return "", "", sandbox.Invalid("uri", "the address is %s<session_id>/<path>", resourceScheme)
	}
	return session, path.Clean(file), nil
}
