package mcp

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	mcpgo "github.com/mark3labs/mcp-go/mcp"

	"caisson/executor"
)

// The bounds of images and files in one result, since clients bound the whole of
// it: all of them together in bytes, and how many.
const (
	maxMedia      = executor.MostMedia
	maxMediaItems = executor.MostMediaItems
)

// media is a result's images as image content and its files as embedded resources,
// in this order, while there is room; note tells of what is left out. A kind that
// the bytes do not bear out is not believed: clients hand images to decoders.
func media(images, files []executor.File) (content []mcpgo.Content, note string) {
	room, leftOut, size := maxMedia, 0, 0
	var names []string
	for i, f := range append(append([]executor.File{}, images...), files...) {
		if len(content) >= maxMediaItems || len(f.Data) > room {
			leftOut, size = leftOut+1, size+len(f.Data)
			if len(names) < 3 {
				names = append(names, show(f.Name))
			}
			continue
		}
		room -= len(f.Data)
		if kind := http.DetectContentType(f.Data); i < len(images) && isImage(kind) {
			content = append(content, mcpgo.NewImageContent(base64.StdEncoding.EncodeToString(f.Data), kind))
			continue
		}
		content = append(content, mcpgo.NewEmbeddedResource(blobOf(f)))
	}
	if leftOut == 0 {
		return content, ""
	}
	return content, fmt.Sprintf("%d images and files with %d bytes are left out (%s): those of one result may be %d, with %d bytes together",
		leftOut, size, strings.Join(names, ", "), maxMediaItems, maxMedia)
}

// blobOf is a file as an embedded resource. Its address only names it: there is
// nothing to be read under it.
func blobOf(f executor.File) mcpgo.BlobResourceContents {
	name := escape(visible(shorten(f.Name)))
	if name == "" {
		name = "file"
	}
	kind := f.MIMEType
	if kind == "" || len(kind) > 100 || escape(kind) != kind {
		kind = http.DetectContentType(f.Data)
	}
	return mcpgo.BlobResourceContents{URI: "result:///" + url.PathEscape(name), MIMEType: kind, Blob: base64.StdEncoding.EncodeToString(f.Data)}
}
