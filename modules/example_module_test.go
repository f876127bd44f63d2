package modules_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// dice is a complete module with one setting and one tool.
type dice struct {
	name  string
	Sides int `json:"sides"`
	roll  tool.Tool
}

func newDice(c modules.Config) (modules.Module, error) {
	d := &dice{name: c.Name, Sides: 6}
	if err := c.DecodeSettings(d); err != nil {
		return nil, err
	}
	var err error
	d.roll, err = tool.New("roll_dice", "Roll a die and return the number on top.",
		func(context.Context, struct{}) (int, error) { return 1 + rand.IntN(max(d.Sides, 1)), nil }, nil)
	return d, err
}

func (d *dice) Name() string { return d.name }

func (d *dice) ToolGroups() []toolgroups.Group {
	return []toolgroups.Group{{ID: "dice", Description: "Chance", Tools: []tool.Tool{d.roll}}}
}

// A module is a value with a name and groups, and a constructor. To build a program that
// has it, pass modules.ModuleKind{Name: "dice", New: newDice} to cmd.Main.
func Example_module() {
	m, err := newDice(modules.Config{Name: "dice", Settings: []byte(`{"sides": 1}`)})
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := m.ToolGroups()[0].Tools[0].Call(context.Background(), tool.Call{Args: []byte(`{}`)})
	fmt.Println(string(result.JSON()), err)
	// Output: 1 <nil>
}
