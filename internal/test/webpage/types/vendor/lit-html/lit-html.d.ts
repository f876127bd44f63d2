export type Template = { readonly _$litType$: number };
export function html(strings: TemplateStringsArray, ...values: unknown[]): Template;
export function svg(strings: TemplateStringsArray, ...values: unknown[]): Template;
export const nothing: unique symbol;
export function render(value: unknown, container: Element): unknown;
