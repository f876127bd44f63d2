package config_test

import (
	"fmt"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

func Example() {
	files := []yamldoc.File{
		{Path: "org.yaml", Data: []byte("kind: organization\nname: lab\nmodel: ${MODEL:scripted}\n")},
		{Path: "team.yaml", Data: []byte("kind: role\nname: analyst\ntoolGroups: [workspace]\n---\nkind: model\nname: scripted\ntype: script\nfile: agent.js\n")},
		{Path: "agent.js", Data: []byte("role('*', function* () { return 1 })"), Named: true},
	}
	cfg, err := config.ReadFiles(files, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Organization.Model, cfg.Roles[0].Name, cfg.Roles[0].ToolGroups.IDs, len(cfg.Models[0].Source))
	// Output: scripted analyst [workspace] 36
}

func ExampleErrors() {
	_, err := config.ReadFiles([]yamldoc.File{{Path: "team.yaml", Data: []byte("kind: role\nname: root\ntoolGruops: []\n")}}, nil)
	fmt.Println(err)
	// Output:
	// team.yaml:2:7: name: root's role is created by the runtime (its prompt is the organization's rootPrompt)
	//   name: root
	//         ^
	// team.yaml:3:1: toolGruops: unknown field (did you mean "toolGroups"?)
	//   toolGruops: []
	//   ^
}
