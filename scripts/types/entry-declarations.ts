import {
  type Symbol as CheckedSymbol,
  type InterfaceType,
  type Project,
  SignatureKind,
  SymbolFlags,
  type Type,
} from "typescript/unstable/sync";
import { type TypeNames, TypePrinter } from "./type-printer.ts";

const SCHEMA = `/** A schema: it says whether a value is one, and what it is then. */
interface Schema<Output, Input> {
  /** Throws for a value that does not fit. */
  parse(value: unknown): Output;
  safeParse(value: unknown): { success: true; data: Output; error?: never } | { success: false; data?: never; error: Error };
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}`;

/** The declarations of one entry point, and of everything of ours that they mention. */
export class EntryDeclarations implements TypeNames {
  readonly #project: Project;
  readonly #sources: string;
  readonly #aliases: ReadonlyMap<number, CheckedSymbol>;
  readonly #printer: TypePrinter;
  readonly #names = new Map<number, string>();
  readonly #taken = new Set<string>();
  readonly #globals = new Set<string>();
  /** Those that exist when the program runs, besides classes. */
  readonly #values = new Set<number>();
  readonly #queue: CheckedSymbol[] = [];
  #hasSchema = false;

  constructor(project: Project, { sources, aliases }: { sources: string; aliases: ReadonlyMap<number, CheckedSymbol> }) {
    this.#project = project;
    this.#sources = sources;
    this.#aliases = aliases;
    this.#printer = new TypePrinter(project, this);
  }

  write(exported: readonly { name: string; symbol: CheckedSymbol; isType: boolean }[]): string {
    for (const { name, symbol, isType } of exported) {
      this.#take(symbol, name);
      if (!isType) this.#values.add(symbol.id);
    }
    const parts: string[] = [];
    for (let symbol = this.#queue.shift(); symbol !== undefined; symbol = this.#queue.shift()) parts.push(this.#declare(symbol));
    const hidden = [...this.#globals].filter((name) => this.#taken.has(name));
    if (hidden.length > 0) throw new Error(`these are ours and global, too: ${hidden.join(", ")}`);
    const names = exported.map(({ name }) => name).sort();
    return `${[...(this.#hasSchema ? [SCHEMA] : []), ...parts, `export { ${names.join(", ")} };`].join("\n\n")}\n`;
  }

  ofSymbol(symbol: CheckedSymbol): string {
    return this.#names.get(symbol.id) ?? this.#take(symbol, symbol.name);
  }

  #take(symbol: CheckedSymbol, wanted: string): string {
    let name = wanted;
    for (let number = 2; this.#taken.has(name); number++) name = `${wanted}${number}`;
    this.#taken.add(name);
    this.#names.set(symbol.id, name);
    this.#queue.push(symbol);
    return name;
  }

  ofAlias(type: Type): string | null {
    const symbol = this.#aliases.get(type.id);
    return symbol === undefined ? null : this.ofSymbol(symbol);
  }

  isOurs(symbol: CheckedSymbol): boolean {
    return symbol.declarations.some(({ path }) => path.startsWith(`${this.#sources}/`));
  }

  isZods(symbol: CheckedSymbol): boolean {
    return symbol.declarations.some(({ path }) => path.includes("/node_modules/zod/"));
  }

  ofForeign(symbol: CheckedSymbol): string {
    const path = pathOf(symbol);
    const [top = ""] = path;
    if (this.#project.checker.resolveName(top, SymbolFlags.Type | SymbolFlags.Namespace) !== undefined) {
      this.#globals.add(top);
      return path.join(".");
    }
    const module = /\/@types\/node\/(.+)\.d\.ts$/.exec(symbol.declarations[0]?.path ?? "")?.[1];
    if (module === undefined) throw new Error(`a type of ${symbol.declarations[0]?.path} is in the declarations: ${symbol.name}`);
    return `import("node:${module}").${symbol.name}`;
  }

  useSchema(): string {
    this.#hasSchema = true;
    return "Schema";
  }

  #declare(symbol: CheckedSymbol): string {
    const name = this.ofSymbol(symbol);
    const comment = this.#printer.comment(symbol);
    const { checker } = this.#project;
    const { flags } = symbol;
    if (flags & SymbolFlags.Class) return `${comment}declare class ${name}${this.#class(symbol)}`;
    const parts: string[] = [];
    if (flags & SymbolFlags.Interface) parts.push(`interface ${name}${this.#interface(symbol)}`);
    if (flags & SymbolFlags.TypeAlias) {
      const type = checker.getDeclaredTypeOfSymbol(symbol);
      // An alias of a type that has another name is that name.
      const own = this.#aliases.get(type.id)?.id === symbol.id;
      parts.push(`type ${name} = ${this.#printer.text(type, { own })};`);
    }
    if (flags & (SymbolFlags.Function | SymbolFlags.Variable) && this.#values.has(symbol.id)) {
      const type = checker.getTypeOfSymbol(symbol);
      if (type === undefined) throw new Error(`${name} has no type`);
      const signatures = flags & SymbolFlags.Function ? checker.getSignaturesOfType(type, SignatureKind.Call) : [];
      parts.push(...signatures.map((each) => `declare function ${name}${this.#printer.signature(each)};`));
      if (signatures.length === 0) parts.push(`declare const ${name}: ${this.#printer.text(type)};`);
    }
    if (parts.length === 0) throw new Error(`it is not known how to declare ${name}`);
    return `${comment}${parts.join("\n")}`;
  }

  #interface(symbol: CheckedSymbol): string {
    const type = this.#project.checker.getDeclaredTypeOfSymbol(symbol) as InterfaceType;
    const { bases, isInherited } = this.#foreignBases(type);
    const members = this.#printer.members(type, { isLeftOut: isInherited });
    // One that is only called is an arrow there, which an interface cannot be.
    const body = members.startsWith("{") ? members : `{ ${members.replace(/\) => (?!.*\) => )/s, "): ")} }`;
    return `${this.#generics(type)}${bases.length === 0 ? "" : ` extends ${bases.join(", ")}`} ${body}`;
  }

  #class(symbol: CheckedSymbol): string {
    const { checker } = this.#project;
    const type = checker.getDeclaredTypeOfSymbol(symbol) as InterfaceType;
    const { bases, isInherited } = this.#foreignBases(type);
    const values = checker.getTypeOfSymbol(symbol);
    const constructors = values === undefined ? [] : checker.getSignaturesOfType(values, SignatureKind.Construct);
    const made = constructors.map((each) => `  constructor${this.#printer.signature(each).replace(/: [^)]*$/, "")};`);
    const members = checker.getPropertiesOfType(type).filter((each) => !isInherited(each) && !this.#isPrivate(each));
    const lines = members.map((each) => `  ${this.#printer.property(each).replaceAll("\n", "\n  ")}`);
    return `${this.#generics(type)}${bases.length === 0 ? "" : ` extends ${bases[0]}`} {\n${[...made, ...lines].join("\n")}\n}`;
  }

  #isPrivate(symbol: CheckedSymbol): boolean {
    return symbol.name.includes("#") || String(symbol.escapedName).includes("#");
  }

  #generics(type: InterfaceType): string {
    const local = type.getLocalTypeParameters();
    return local.length === 0 ? "" : `<${local.map((each) => this.#printer.typeParameter(each)).join(", ")}>`;
  }

  /** What it inherits from the language's or Node's own types stays inherited. */
  #foreignBases(type: InterfaceType): { bases: string[]; isInherited(symbol: CheckedSymbol): boolean } {
    const all = this.#project.checker.getBaseTypes(type);
    const foreign = all.filter((base) => {
      const symbol = base.getSymbol();
      return symbol !== undefined && !this.isOurs(symbol) && (symbol.flags & (SymbolFlags.Interface | SymbolFlags.Class)) !== 0;
    });
    return {
      bases: foreign.map((base) => this.#printer.text(base)),
      isInherited: (symbol) => foreign.length > 0 && !this.isOurs(symbol),
    };
  }
}

/** With the namespaces that it is in, and without modules. */
function pathOf(symbol: CheckedSymbol): string[] {
  const path = [symbol.name];
  for (let parent = symbol.getParent(); parent !== undefined; parent = parent.getParent())
    if (parent.name !== "__global" && !parent.name.startsWith('"')) path.unshift(parent.name);
  return path;
}
