package builtin

import (
	"regexp"
	"strings"

	"github.com/rolecall/rolecall/errcode"
)

// checkBlocked refuses what never is meant well, before it is tried. This is a
// courtesy to whoever made a mistake, not a wall: the walls are the sandbox's.
func checkBlocked(argv []string) error {
	line := strings.Join(argv, " ")
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		line = argv[2]
	}
	for _, b := range blocked {
		if b.pattern.MatchString(line) {
			return errcode.New(errcode.CommandBlocked, "the command was not run: %s. Work inside the workspace, without other rights", b.reason).
				With("reason", b.reason)
		}
	}
	return nil
}

// blocked lists commands, in any letter case and at any place of a line where
// a command begins.
var blocked = []struct {
	pattern *regexp.Regexp
	reason  string
}{
	{command(`sudo\b`), "sudo asks for other rights"},
	{command(`su\s+(-\S*\s+)*root\b`), "su asks for other rights"},
	{command(`rm\s+(-\S+\s+)+/\*?(\s|$|[;&|)])`), "rm of the whole file system"},
	{command(`chmod\s+(-\S+\s+)*[0-7]?777\s+/(\s|$|\*|bin|boot|dev|etc|lib|root|sbin|sys|usr|var)`), "chmod 777 of the system"},
	{command(`mkfs(\.\w+)?\b`), "mkfs makes file systems"},
	{command(`dd\s+(\S+\s+)*if=`), "dd copies devices"},
	{command(`(shutdown|reboot|halt|poweroff)\b`), "it stops the machine"},
	{command(`init\s+[06]\b`), "it stops the machine"},
	{regexp.MustCompile(`>\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk)`), "it overwrites a disk"},
	{regexp.MustCompile(`:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}`), "it is a bomb of processes"},
}

// command matches a command where one can begin: at the start, after an
// operator, in a substitution, after a word that takes a command.
func command(pattern string) *regexp.Regexp {
	return regexp.MustCompile("(?i)(^|[;&|(`\n]|\\b(then|do|else|exec|env|nohup|time|xargs)\\s)\\s*(/\\S*/)?" + pattern)
}
