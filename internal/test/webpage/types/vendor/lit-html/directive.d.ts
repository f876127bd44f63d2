export class Directive {
  constructor(part: unknown);
  render(...values: any[]): unknown;
  update(part: any, values: any[]): unknown;
}
export function directive<C extends new (part: unknown) => Directive>(c: C): (...values: Parameters<InstanceType<C>["render"]>) => unknown;
