package cmd

import (
	"fmt"
	"net/url"
	"os/exec"
	"runtime"

	"github.com/rolecall/rolecall/org/hosts"
)

// openBrowser opens a URL in the browser of the person at this machine. It returns when the program
// that does so has started.
func openBrowser(text string) error {
	name, args := "xdg-open", []string{text}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", text}
	}
	command := exec.Command(name, args...)
	if err := command.Start(); err != nil {
		return err
	}
	go func() { _ = command.Wait() }()
	return nil
}

// checkBrowserURL rejects a URL that a person should not open. A person may open a page with https,
// or with http on this machine.
func checkBrowserURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !hosts.IsLoopback(u.Hostname())) {
		return fmt.Errorf("%.200q is not the address of a page with https", text)
	}
	return nil
}
