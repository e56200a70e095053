package server

import (
	"bytes"
	"errors"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// wantsPage reports whether the client is a browser.
func wantsPage(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// page answers with a file of the page, or with its entry: the page has
// addresses of its own. It reports whether it answered.
func (s *Server) page(w http.ResponseWriter, r *http.Request) bool {
	name := strings.TrimPrefix(path.Clean("/"+r.URL.Path), "/")
	if s.opts.Page != nil && name != "" && s.serveFile(w, r, name) {
		return true
	}
	if !wantsPage(r) {
		return false
	}
	if s.opts.Page != nil && s.serveFile(w, r, "index.html") {
		return true
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte(noPage))
	return true
}

// serveFile answers with a file of the page. Names with a hash of their
// content, as under assets/, never change.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request, name string) bool {
	data, err := fs.ReadFile(s.opts.Page, name)
	if errors.Is(err, fs.ErrNotExist) || err != nil {
		return false
	}
	if strings.HasPrefix(name, "assets/") {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	} else {
		w.Header().Set("Cache-Control", "no-cache")
	}
	if name == "index.html" {
		data = s.started(r, s.described(r, data))
	}
	if packed, err := fs.ReadFile(s.opts.Page, name+".br"); err == nil && acceptsBrotli(r) {
		w.Header().Set("Content-Encoding", "br")
		data = packed
	}
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(data))
	return true
}

// acceptsBrotli reports whether the client reads what was compressed when the page was built.
func acceptsBrotli(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(coding) == "br" {
			return true
		}
	}
	return false
}

// noPage is shown by a program that was built without the page.
const noPage = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>MemoryMark</title>
<meta name="viewport" content="width=device-width">
<style>body{background:#0a0a0a;color:#ddd;font:16px/1.5 system-ui,sans-serif;max-width:40em;margin:4em auto;padding:0 1em}
a,code{color:#00ff88}</style></head>
<body><h1>MemoryMark</h1>
<p>The server runs, but this program was built without its page. In the source tree, <code>make web build</code>
builds both.</p>
<p>The API needs no page: <a href="/docs">/docs</a> describes it.</p></body></html>
`
