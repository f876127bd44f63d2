// Built-in functions on arrays run to the length an object states, which costs
// nothing to state: new Array(2**32 - 1), {length: 2**53 - 1}. They cannot be
// interrupted. No array with that many elements fits the memory there is, so
// nothing of use is refused here.
(() => {
  "use strict";
  const most = 2 ** 24;
  const { apply, defineProperty } = Reflect;
  const check = (value, name) => {
    if (value !== null && typeof value === "object" && value.length > most)
      throw new RangeError(`${name}: a length of ${value.length} is too much`);
  };
  const guard = (name) => {
    const native = Array.prototype[name];
    const guarded = { [name](...args) {
      check(this, name);
      if (name === "concat") for (let i = 0; i < args.length; i++) check(args[i], name);
      return apply(native, this, args);
    } }[name];
    defineProperty(guarded, "length", { value: native.length });
    defineProperty(Array.prototype, name, { value: guarded });
  };
  ["concat", "copyWithin", "every", "fill", "filter", "find", "findIndex", "findLast", "findLastIndex", "flat",
    "flatMap", "forEach", "includes", "indexOf", "join", "lastIndexOf", "map", "reduce", "reduceRight", "reverse",
    "shift", "slice", "some", "sort", "splice", "toReversed", "toSorted", "toSpliced", "toLocaleString", "unshift", "with",
  ].forEach(guard);
})();
