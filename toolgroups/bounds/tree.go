package bounds

// every is the step that means every element of an array.
const every = "*"

// pathTree has the paths of a rule, so that arguments are read once for all of them. The first
// node is the root, which no step leads to. An empty tree has no paths.
type pathTree []node

// node is a place in the arguments that paths lead to. Other nodes are referred to by their index
// in the tree, paths by their index in the rule. -1 means no node or path.
type node struct {
	step       string // the last step that leads here
	firstPath  int    // the first of the paths that lead here or further
	required   int    // the first of them that rejects a missing value
	end        int    // the path that ends here
	pathCount  int    // how many lead here or further
	firstChild int    // the first node below
	childCount int    // how many nodes are below
	sibling    int    // the next node below the same one
}

// newTree returns the tree of paths.
func newTree(paths []pathRule) pathTree {
	t := make(pathTree, 1, 1+len(paths))
	t[0] = newNode("", 0)
	for i := range paths {
		at := 0
		t[at].addPath(i, &paths[i])
		for _, step := range paths[i].steps {
			at = t.ensureChild(at, step, i)
			t[at].addPath(i, &paths[i])
		}
		t[at].end = i
	}
	return t
}

func newNode(step string, path int) node {
	return node{step: step, firstPath: path, required: -1, end: -1, firstChild: -1, sibling: -1}
}

// addPath adds a path that leads to n.
func (n *node) addPath(i int, p *pathRule) {
	n.pathCount++
	if !p.allowMissing && n.required < 0 {
		n.required = i
	}
}

// ensureChild returns the node that a step leads to from another one. It adds the node if there is none.
func (t *pathTree) ensureChild(at int, step string, path int) int {
	last := -1
	for i := (*t)[at].firstChild; i >= 0; i = (*t)[i].sibling {
		if (*t)[i].step == step {
			return i
		}
		last = i
	}
	*t = append(*t, newNode(step, path))
	added := len(*t) - 1
	if last < 0 {
		(*t)[at].firstChild = added
	} else {
		(*t)[last].sibling = added
	}
	(*t)[at].childCount++
	return added
}
