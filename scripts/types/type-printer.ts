import {
  type Symbol as CheckedSymbol,
  type Checker,
  ElementFlags,
  type IndexedAccessType,
  type IndexType,
  type IntersectionType,
  type LiteralType,
  ObjectFlags,
  type ObjectType,
  type Project,
  type Signature,
  SignatureKind,
  SymbolFlags,
  type TemplateLiteralType,
  type TupleType,
  type Type,
  TypeFlags,
  type TypeParameter,
  type TypeReference,
  type UnionType,
} from "typescript/unstable/sync";

/** In TypeScript's transient symbols: a mapped type made the property read-only. */
const CHECK_FLAG_READONLY = 8;
/** Deeper than any type of ours. */
const DEPTH_MAX = 40;
const ANY_BUFFER = "ArrayBuffer | SharedArrayBuffer";

export interface TypeNames {
  /** How a declaration of ours is called here; it is written out, too. */
  ofSymbol(symbol: CheckedSymbol): string;
  /** The name of a type that an alias of ours stands for. */
  ofAlias(type: Type): string | null;
  isOurs(symbol: CheckedSymbol): boolean;
  isZods(symbol: CheckedSymbol): boolean;
  /** How a declaration of the language's, or of Node's, is called. */
  ofForeign(symbol: CheckedSymbol): string;
  /** A schema is shown by what it gives and takes. */
  useSchema(): string;
}

/** Writes out what a type is, in place of how it was inferred. */
export class TypePrinter {
  readonly #project: Project;
  readonly #checker: Checker;
  readonly #names: TypeNames;
  readonly #undefined: number;
  #depth = 0;

  constructor(project: Project, names: TypeNames) {
    this.#project = project;
    this.#checker = project.checker;
    this.#names = names;
    this.#undefined = this.#checker.getUndefinedType().id;
  }

  /** `own`: do not give the type's name, but what it stands for. */
  text(type: Type, { own = false }: { own?: boolean } = {}): string {
    if (!own) {
      const alias = this.#names.ofAlias(type);
      if (alias !== null) return alias;
    }
    if (++this.#depth > DEPTH_MAX) throw new Error(`a type has no end: ${this.#checker.typeToString(type).slice(0, 200)}`);
    try {
      return this.#expanded(type);
    } finally {
      this.#depth -= 1;
    }
  }

  #expanded(type: Type): string {
    const { flags } = type;
    if (flags & TypeFlags.Boolean) return "boolean";
    if (type.isUnionType()) return this.#union(type);
    if (type.isIntersectionType()) return this.#intersection(type);
    if (flags & (TypeFlags.StringLiteral | TypeFlags.NumberLiteral | TypeFlags.BooleanLiteral))
      return JSON.stringify((type as LiteralType).value);
    if (flags & TypeFlags.BigIntLiteral) return `${(type as LiteralType).value}n`;
    if (type.isTemplateLiteralType()) return this.#template(type);
    if (flags & TypeFlags.TypeParameter)
      return (type as TypeParameter).isThisType === true ? "this" : (type.getSymbol()?.name ?? "unknown");
    if (type.isIndexType()) return `keyof (${this.text((type as IndexType).getTarget())})`;
    if (type.isIndexedAccessType()) return this.#indexed(type);
    if (flags & TypeFlags.Object) return this.#object(type);
    return this.#checker.typeToString(type);
  }

  #indexed(type: IndexedAccessType): string {
    return `(${this.text(type.getObjectType())})[${this.text(type.getIndexType())}]`;
  }

  #union(type: UnionType): string {
    const parts = type.getTypes();
    const isNothing = ({ flags }: Type) => (flags & (TypeFlags.Null | TypeFlags.Undefined)) !== 0;
    return this.#unionOf(type, { nothing: parts.filter(isNothing), others: parts.filter((part) => !isNothing(part)) });
  }

  /** By the name of what is left without null and undefined, where that has one. */
  #unionOf(type: Type, { nothing, others }: { nothing: readonly Type[]; others: readonly Type[] }): string {
    const left = others.length > 1 ? this.#checker.getNonNullableType(type) : undefined;
    const alias = left === undefined || left.id === type.id ? null : this.#names.ofAlias(left);
    const isBoth = others.filter(({ flags }) => flags & TypeFlags.BooleanLiteral).length === 2;
    const named = others.filter(({ flags }) => !(isBoth && flags & TypeFlags.BooleanLiteral)).map((part) => this.#part(part));
    const texts = alias === null ? [...named, ...(isBoth ? ["boolean"] : [])] : [alias];
    return [...new Set([...texts, ...nothing.map((part) => this.text(part))])].join(" | ");
  }

  /** Without some of the types that it may be. */
  #without(type: Type, isDropped: (part: Type) => boolean): string {
    const parts = type.isUnionType() ? type.getTypes() : [];
    if (!parts.some(isDropped)) return this.text(type);
    const nothing = parts.filter((part) => (part.flags & (TypeFlags.Null | TypeFlags.Undefined)) !== 0);
    return this.#unionOf(type, {
      nothing: nothing.filter((part) => !isDropped(part)),
      others: parts.filter((part) => !nothing.includes(part)),
    });
  }

  #intersection(type: IntersectionType): string {
    // Objects together are one object; anything else is what it is.
    const parts = type.getTypes();
    const isPlain = (each: Type) => (each.flags & TypeFlags.Object) !== 0 && this.#signatures(each, SignatureKind.Call).length === 0;
    if (parts.every(isPlain)) return this.members(type);
    return parts.map((each) => this.#part(each)).join(" & ");
  }

  #part(type: Type): string {
    const text = this.text(type);
    return text.startsWith("keyof ") || (text.includes("=>") && /^[(<]/.test(text)) ? `(${text})` : text;
  }

  #template(type: TemplateLiteralType): string {
    const types = type.getTypes();
    return `\`${type.texts.map((text, index) => `${text}${types[index] === undefined ? "" : `\${${this.text(types[index])}}`}`).join("")}\``;
  }

  #object(type: Type): string {
    const { objectFlags } = type as ObjectType;
    if (this.#checker.isTupleType(type)) return this.#tuple(type as TypeReference);
    if (this.#checker.isArrayType(type)) {
      const [item] = this.#checker.getTypeArguments(type as TypeReference);
      const inner = item === undefined ? "unknown" : this.text(item);
      return `${type.getSymbol()?.name === "ReadonlyArray" ? "ReadonlyArray" : "Array"}<${inner}>`;
    }
    const symbol = type.getSymbol();
    const isNamed = symbol !== undefined && (symbol.flags & (SymbolFlags.Class | SymbolFlags.Interface | SymbolFlags.Enum)) !== 0;
    if (!isNamed || symbol === undefined) return this.members(type);
    if (this.#names.isZods(symbol)) return this.#schema(type);
    const isInstance = (objectFlags & (ObjectFlags.Class | ObjectFlags.Interface | ObjectFlags.Reference)) !== 0;
    const name = this.#names.isOurs(symbol) ? this.#names.ofSymbol(symbol) : this.#names.ofForeign(symbol);
    return isInstance ? `${name}${this.#typeArguments(type)}` : `typeof ${name}`;
  }

  #typeArguments(type: Type): string {
    if (((type as ObjectType).objectFlags & ObjectFlags.Reference) === 0) return "";
    const given = this.#checker.getTypeArguments(type as TypeReference).filter((each) => (each as TypeParameter).isThisType !== true);
    const texts = given.map((each) => this.text(each));
    // What is the default is left out: older compilers and libraries know fewer parameters.
    while (texts.at(-1) === "any" || texts.at(-1) === ANY_BUFFER) texts.pop();
    return texts.length === 0 ? "" : `<${texts.join(", ")}>`;
  }

  #tuple(type: TypeReference): string {
    const { elementFlags, readonly } = type.getTarget() as TupleType;
    const items = this.#checker.getTypeArguments(type).map((item, index) => {
      const flags = elementFlags[index] ?? ElementFlags.Required;
      if (flags & ElementFlags.Rest) return `...Array<${this.text(item)}>`;
      if (flags & ElementFlags.Variadic) return `...${this.text(item)}`;
      return flags & ElementFlags.Optional ? `(${this.text(item)})?` : this.text(item);
    });
    return `${readonly ? "readonly " : ""}[${items.join(", ")}]`;
  }

  #schema(type: Type): string {
    const inner = this.#checker.getPropertyOfType(type, "_zod");
    const of = inner === undefined ? undefined : this.#checker.getTypeOfSymbol(inner);
    const side = (name: string) => {
      const symbol = of === undefined ? undefined : this.#checker.getPropertyOfType(of, name);
      const found = symbol === undefined ? undefined : this.#checker.getTypeOfSymbol(symbol);
      return found === undefined ? "unknown" : this.text(found);
    };
    return `${this.#names.useSchema()}<${side("output")}, ${side("input")}>`;
  }

  /** An object by its properties, index signatures and calls. `isLeftOut`: not those that it inherits from elsewhere. */
  members(type: Type, { isLeftOut = () => false }: { isLeftOut?: (symbol: CheckedSymbol) => boolean } = {}): string {
    const calls = this.#signatures(type, SignatureKind.Call);
    const constructs = this.#signatures(type, SignatureKind.Construct);
    const properties = this.#checker.getPropertiesOfType(type).filter((symbol) => !isLeftOut(symbol) && symbol.name !== "prototype");
    const indexes = this.#checker.getIndexInfosOfType(type);
    if (properties.length === 0 && indexes.length === 0 && constructs.length === 0 && calls.length === 1)
      return this.signature(calls[0] as Signature, { arrow: true });
    const lines = [
      ...calls.map((each) => `${this.signature(each)};`),
      ...constructs.map((each) => `new ${this.signature(each)};`),
      ...indexes.map(
        ({ keyType, valueType, isReadonly }) => `${isReadonly ? "readonly " : ""}[key: ${this.text(keyType)}]: ${this.text(valueType)};`,
      ),
      ...properties.map((symbol) => this.property(symbol)),
    ];
    return lines.length === 0 ? "{}" : `{\n${lines.map((line) => `  ${line.replaceAll("\n", "\n  ")}`).join("\n")}\n}`;
  }

  property(symbol: CheckedSymbol): string {
    const type = this.#checker.getTypeOfSymbol(symbol);
    const isOptional = (symbol.flags & SymbolFlags.Optional) !== 0;
    const name = propertyName(symbol);
    const comment = this.comment(symbol);
    const readonly = this.#isReadonly(symbol) ? "readonly " : "";
    if (type === undefined) return `${comment}${name}: unknown;`;
    const signatures = this.#signatures(type, SignatureKind.Call);
    if (symbol.flags & SymbolFlags.Method && !isOptional && signatures.length > 0)
      return `${comment}${signatures.map((each) => `${name}${this.signature(each)};`).join("\n")}`;
    return `${comment}${readonly}${name}${isOptional ? "?" : ""}: ${isOptional ? this.#without(type, (part) => (part.flags & TypeFlags.Undefined) !== 0 && part.id !== this.#undefined) : this.text(type)};`;
  }

  #isReadonly(symbol: CheckedSymbol): boolean {
    if (symbol.checkFlags & CHECK_FLAG_READONLY) return true;
    if (symbol.flags & SymbolFlags.GetAccessor && !(symbol.flags & SymbolFlags.SetAccessor)) return true;
    const node = symbol.valueDeclaration?.resolve(this.#project) as { modifiers?: readonly { getText?(): string }[] } | undefined;
    return node?.modifiers?.some((each) => each.getText?.() === "readonly") ?? false;
  }

  #signatures(type: Type, kind: SignatureKind): readonly Signature[] {
    return this.#checker.getSignaturesOfType(type, kind);
  }

  signature(signature: Signature, { arrow = false }: { arrow?: boolean } = {}): string {
    const generics = signature.getTypeParameters().map((each) => this.typeParameter(each));
    const parameters = signature.getParameters().map((symbol, index, all) => this.#parameter(symbol, { index, all, signature }));
    const type = this.#checker.getReturnTypeOfSignature(signature);
    const predicate = this.#checker.getTypePredicateOfSignature(signature);
    const result =
      predicate?.parameterName !== undefined && predicate.type !== undefined
        ? `${predicate.parameterName} is ${this.text(predicate.type)}`
        : type === undefined
          ? "unknown"
          : this.text(type);
    return `${generics.length === 0 ? "" : `<${generics.join(", ")}>`}(${parameters.join(", ")})${arrow ? " => " : ": "}${result}`;
  }

  typeParameter(type: TypeParameter): string {
    const constraint = this.#checker.getConstraintOfTypeParameter(type);
    return `${type.getSymbol()?.name}${constraint === undefined ? "" : ` extends ${this.text(constraint)}`}`;
  }

  #parameter(
    symbol: CheckedSymbol,
    { index, all, signature }: { index: number; all: readonly CheckedSymbol[]; signature: Signature },
  ): string {
    const type = this.#checker.getTypeOfSymbol(symbol);
    const isRest = signature.hasRestParameter && index === all.length - 1;
    const node = symbol.valueDeclaration?.resolve(this.#project) as { questionToken?: unknown; initializer?: unknown } | undefined;
    const isOptional = !isRest && (node?.questionToken !== undefined || node?.initializer !== undefined);
    // A parameter that is taken apart has no name.
    const name = /^[A-Za-z_$][\w$]*$/.test(symbol.name) && !symbol.name.startsWith("__") ? symbol.name : `options${index}`;
    const text =
      type === undefined
        ? "unknown"
        : isOptional
          ? this.#without(type, (part) => (part.flags & TypeFlags.Undefined) !== 0)
          : this.text(type);
    return `${isRest ? "..." : ""}${name}${isOptional ? "?" : ""}: ${text}`;
  }

  comment(symbol: CheckedSymbol): string {
    const text = symbol.getDocumentationComment(this.#checker).trim().replaceAll("*/", "*\\/");
    if (text === "") return "";
    return text.includes("\n") ? `/**\n * ${text.replaceAll("\n", "\n * ")}\n */\n` : `/** ${text} */\n`;
  }
}

function propertyName({ name, escapedName }: CheckedSymbol): string {
  const wellKnown = /^(?:__|\u00FE)@(\w+)(?:@\d+)?$/.exec(String(escapedName))?.[1];
  if (wellKnown !== undefined) return `[Symbol.${wellKnown}]`;
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : JSON.stringify(name);
}
