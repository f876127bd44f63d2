package scripts_test

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// docCommands implements doccommands PAGE HEADING, which writes the commands of a section of
// docs/PAGE to commands.sh, for "sh -e". They are the lines that are indented by four spaces.
// A command whose comment begins with "exits with 1" must fail. Other commands must not.
func docCommands(ts *testscript.TestScript, neg bool, args []string) {
	page, err := os.ReadFile(filepath.Join(ts.Getenv("EXAMPLES"), "..", "docs", args[0]))
	ts.Check(err)
	_, section, found := strings.Cut(string(page), "\n## "+args[1]+"\n")
	if !found {
		ts.Fatalf("%s has no section %q", args[0], args[1])
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var commands []string
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, shellCommand(strings.TrimSpace(command)))
		}
	}
	if len(commands) == 0 {
		ts.Fatalf("section %q of %s has no commands", args[1], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs("commands.sh"), []byte(strings.Join(commands, "\n")+"\n"), 0o600))
}

// shellCommand returns a documented command as a line for a shell that stops at the first
// failure. The line is also printed.
func shellCommand(line string) string {
	command, comment, _ := strings.Cut(line, "  #")
	command = strings.TrimSpace(command)
	shown := "echo '$ " + strings.ReplaceAll(command, "'", `'\''`) + "'\n"
	if strings.HasPrefix(strings.TrimSpace(comment), "exits with 1") {
		return shown + "if " + command + "; then exit 9; else test $? = 1; fi"
	}
	return shown + command
}
