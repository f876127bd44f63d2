package cmd

import (
	"html"
	"net/url"
	"os"
	"path/filepath"
)

// writeLoginPage writes a page that leads a browser to an address, and returns the URL of the page.
// The address has the state of a login. Other users of this machine could read an argument of the
// program that opens the browser. They could then log in with an account of theirs, and send the
// answer here. The page is in a directory that only this user can read. remove removes it; it must
// be called once.
func writeLoginPage(address string) (page string, remove func(), err error) {
	dir, err := os.MkdirTemp(pageFolder(), "rolecall-login-")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	name := filepath.Join(dir, "login.html")
	text := html.EscapeString(address)
	document := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0; url=` + text + `"><title>rolecall</title><a href="` + text + `">Log in</a>` + "\n"
	if err := os.WriteFile(name, []byte(document), 0o600); err != nil {
		remove()
		return "", nil, err
	}
	return fileURL(name), remove, nil
}

// pageFolder returns where the directory of a page is made. This is the home directory, because
// browsers that run isolated read no temporary files and no hidden files.
func pageFolder() string {
	home, err := os.UserHomeDir()
	if err != nil {
		return os.TempDir()
	}
	if info, err := os.Stat(home); err != nil || !info.IsDir() {
		return os.TempDir()
	}
	return home
}

// fileURL returns the URL of a file with an absolute path.
func fileURL(name string) string {
	path := filepath.ToSlash(name)
	if path[0] != '/' { // C:/…
		path = "/" + path
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
