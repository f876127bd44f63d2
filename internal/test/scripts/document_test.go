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
	var commands []string
	for line := range strings.Lines(docSection(ts, args[0], args[1])) {
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

// docFile implements docfile PAGE HEADING FILE, which writes the first YAML block of a section
// of docs/PAGE to FILE.
func docFile(ts *testscript.TestScript, neg bool, args []string) {
	_, block, found := strings.Cut(docSection(ts, args[0], args[1]), "\n```yaml\n")
	block, _, ended := strings.Cut(block, "```")
	if !found || !ended {
		ts.Fatalf("section %q of %s has no YAML block", args[1], args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), []byte(block), 0o600))
}

// docSection returns the text of a section of docs/PAGE.
func docSection(ts *testscript.TestScript, page, heading string) string {
	text, err := os.ReadFile(filepath.Join(ts.Getenv("EXAMPLES"), "..", "docs", page))
	ts.Check(err)
	_, section, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		ts.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
