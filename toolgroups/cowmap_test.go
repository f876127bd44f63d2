package toolgroups_test

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/toolgroups"
)

// The cowMaps of a Snapshot behave as Go maps do, for all names and orders of changes.
// Older Snapshots keep their entries.
func TestCowMap_AgainstModel(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 3))
		var plan []byte
		for range 400 {
			plan = append(plan, byte(r.Uint32()), byte(r.Uint32()))
		}
		compareWithModel(t, plan)
	}
}

func FuzzCowMap(f *testing.F) {
	f.Add([]byte{0, 0, 0, 1, 1, 0, 0, 0})
	f.Add([]byte("register, replace and unregister groups with names of every length"))
	f.Fuzz(func(t *testing.T, plan []byte) { compareWithModel(t, plan[:min(len(plan), 2000)]) })
}

// compareWithModel registers, replaces and unregisters groups as plan says and
// compares the registry with a Go map.
func compareWithModel(t *testing.T, plan []byte) {
	t.Helper()
	m, model := toolgroups.NewManager(), map[string]toolgroups.GroupID{}
	var older *toolgroups.Snapshot
	var olderModel map[string]toolgroups.GroupID
	for i := 0; i+1 < len(plan); i += 2 {
		id, tools := groupNames(plan[i])
		maps.DeleteFunc(model, func(_ string, g toolgroups.GroupID) bool { return g == id })
		if plan[i+1]%3 == 0 {
			_ = grouptest.UnregisterGroup(m, "o", id)
		} else {
			tools = tools[:int(plan[i+1])%(len(tools)+1)]
			register(t, m, "o", toolgroups.Group{ID: id, Tools: stubs(tools...)})
			for _, name := range tools {
				model[name] = id
			}
		}
		if i == len(plan)/4*2 {
			older, olderModel = m.CurrentSnapshot(), maps.Clone(model)
		}
	}
	wantTools(t, m.CurrentSnapshot(), model)
	if older != nil {
		wantTools(t, older, olderModel)
	}
}

// groupNames returns the id and the tool names of group n. The names have lengths from
// 1 to 128 bytes. Many differ in one byte only, at the start, in the middle or at the
// end.
func groupNames(n byte) (toolgroups.GroupID, []string) {
	r := rand.New(rand.NewPCG(uint64(n), 4))
	var tools []string
	for i := range 6 {
		name := []byte(fmt.Sprintf("%0128d", binary.LittleEndian.Uint16([]byte{n, byte(i)})))
		name[r.IntN(len(name))] = 'a' + byte(i)
		tools = append(tools, string(name[:1])+string(name[len(name)-r.IntN(len(name)):]))
	}
	tools = append(tools, fmt.Sprintf("%03d", n), fmt.Sprintf("tool_%03d", n), fmt.Sprintf("%03d_tool_with_a_name_behind_the_number", n))
	for i := range 6 { // make the names of all groups different
		tools[i] = fmt.Sprintf("%s.%03d%d", tools[i][:min(len(tools[i]), 123)], n, i)
	}
	return toolgroups.GroupID(fmt.Sprintf("g%03d", n)), tools
}

func wantTools(t *testing.T, s *toolgroups.Snapshot, model map[string]toolgroups.GroupID) {
	t.Helper()
	listed := s.ListTools()
	if len(listed) != len(model) {
		t.Fatalf("got %d tools, want %d", len(listed), len(model))
	}
	for i, name := range slices.Sorted(maps.Keys(model)) {
		if listed[i].Definition.Name != name {
			t.Fatalf("got %q at %d, want %q", listed[i].Definition.Name, i, name)
		}
		if g, ok := s.GroupOf(name); !ok || g != model[name] {
			t.Fatalf("got %q in %q, %v, want %q", name, g, ok, model[name])
		}
		for _, near := range []string{name + "x", name[1:], name[:len(name)-1], "X" + name[1:]} {
			if _, known := model[near]; !known && near != "" {
				if h, ok := s.LookupTool(near); ok {
					t.Fatalf("%q finds %q", near, h.Definition.Name)
				}
			}
		}
	}
	if _, ok := s.LookupTool(""); ok {
		t.Fatal("Lookup finds a tool for the empty name")
	}
}

// The time to register a group does not grow with the number of groups. The limit is
// generous because of the race detector. To see the measured times, run
//
//	go test -run RegisterScales -v ./toolgroups
func TestManager_RegisterScales(t *testing.T) {
	for _, shape := range []struct {
		name string
		most int
		refs []string
	}{{"groups of three tools", short.Count(2000, 5000), nil}, {"toolsets", 1000, []string{"g0-a", "g1-b"}}} {
		t.Run(shape.name, func(t *testing.T) {
			few, many := fill(t, shape.most/4, shape.refs), fill(t, shape.most, shape.refs)
			t.Logf("%d: %v, %d: %v", shape.most/4, few, shape.most, many)
			if many > 20*time.Second {
				t.Errorf("%d took %v", shape.most, many)
			}
		})
	}
}

func fill(t *testing.T, n int, refs []string) time.Duration {
	m, start := toolgroups.NewManager(), time.Now()
	for i := range n {
		id := fmt.Sprintf("g%d", i)
		register(t, m, toolgroups.Config, toolgroups.Group{ID: toolgroups.GroupID(id), Tools: stubs(id+"-a", id+"-b", id+"-c"), Refs: refs})
	}
	took := time.Since(start)
	s := m.CurrentSnapshot()
	if got := len(s.Compile(s.PinOwners(toolgroups.AllGroups())).ForState("").ToolDefinitions()); got != 3*n {
		t.Errorf("got %d tools, want %d", got, 3*n)
	}
	return took
}
