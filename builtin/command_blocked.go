package builtin

import (
	"regexp"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
)

// checkBlocked rejects commands that are never useful in a workspace. It only
// catches mistakes; the sandbox is the security boundary.
func checkBlocked(argv []string) error {
	line := strings.Join(argv, " ")
	if len(argv) == 3 && argv[0] == "sh" && argv[1] == "-c" {
		line = argv[2]
	}
	for _, b := range blockedCommands {
		if b.pattern().MatchString(line) {
			return errcode.New(errcode.CommandBlocked, "the command was not run: %s. Work inside the workspace with the rights you have", b.reason).
				With("reason", b.reason)
		}
	}
	return nil
}

// blockedCommands lists patterns of commands. Those of commandPattern match in any letter case and
// wherever a command can begin in a line. The others match anywhere.
var blockedCommands = []struct {
	pattern func() *regexp.Regexp
	reason  string
}{
	{commandPattern(`sudo\b`), "sudo changes the user"},
	{commandPattern(`su\s+(-\S*\s+)*root\b`), "su changes the user"},
	{commandPattern(`rm\s+(-\S+\s+)+/\*?(\s|$|[;&|)])`), "rm would delete the whole file system"},
	{commandPattern(`chmod\s+(-\S+\s+)*[0-7]?777\s+/(\s|$|\*|bin|boot|dev|etc|lib|root|sbin|sys|usr|var)`), "chmod 777 would open a system directory"},
	{commandPattern(`mkfs(\.\w+)?\b`), "mkfs formats disks"},
	{commandPattern(`dd\s+(\S+\s+)*if=`), "dd copies devices"},
	{commandPattern(`(shutdown|reboot|halt|poweroff)\b`), "it stops the machine"},
	{commandPattern(`init\s+[06]\b`), "it stops the machine"},
	{textutil.LazyPattern(`>\s*/dev/(sd|hd|vd|xvd|nvme|mmcblk)`), "it overwrites a disk"},
	{textutil.LazyPattern(`:\s*\(\s*\)\s*\{\s*:\s*\|\s*:\s*&\s*\}`), "it is a fork bomb"},
}

// commandPattern returns a pattern that matches where a command can begin. This is at the start,
// after an operator, in a substitution, or after a word that takes a command.
func commandPattern(pattern string) func() *regexp.Regexp {
	return textutil.LazyPattern("(?i)(^|[;&|(`\n]|\\b(then|do|else|exec|env|nohup|time|xargs)\\s)\\s*(/\\S*/)?" + pattern)
}
