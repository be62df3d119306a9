"""Columns become inputs by the rules of docs/your-own-data.md."""

import gzip
import pathlib
import tempfile
import unittest

import numpy as np

import coterie
from coterie.encoding import as_text, parse_number

from .folders import ENCODING, INPUTS, ROWS


class EncodingTest(unittest.TestCase):
    def setUp(self):
        self.encoding = coterie.Encoding(ENCODING)

    def test_every_type_and_missing_rule(self):
        np.testing.assert_array_equal(self.encoding.encode(ROWS), INPUTS)

    def test_all_ways_to_hold_rows(self):
        columns = {name: [row[name] for row in ROWS] for name in ROWS[0]}
        np.testing.assert_array_equal(self.encoding.encode(columns), INPUTS)
        numbers = {"age": np.array([60, 150, 90]), "ward": np.array(["A", "C", ""]), "smoker": np.array([False, True, True]), "bmi": np.array([35, np.nan, np.nan])}
        np.testing.assert_array_equal(self.encoding.encode(numbers), INPUTS)
        table = np.array([(60, "A", 0, 35.0), (150, "C", 1, np.nan), (90, "?", 1, np.nan)], dtype=[("age", "f8"), ("ward", "U3"), ("smoker", "i4"), ("bmi", "f8")])
        np.testing.assert_array_equal(self.encoding.encode(table), INPUTS)

        class Frame:  # what pandas has of it
            columns = list(numbers)

            def __getitem__(self, name):
                return numbers[name]

        np.testing.assert_array_equal(self.encoding.encode(Frame()), INPUTS)
        self.assertEqual(self.encoding.encode({name: [] for name in columns}).shape, (0, 6))

    def test_what_is_no_row_is_refused(self):
        for rows in (np.zeros((2, 4)), 3, "age", [1, 2], {"age": 3}):
            with self.assertRaises(TypeError):
                self.encoding.encode(rows)
        with self.assertRaisesRegex(ValueError, "different length: age 1, ward 2"):
            self.encoding.encode({"age": [1], "ward": [1, 2]})

    def test_missing_columns_are_told_by_name(self):
        with self.assertRaisesRegex(coterie.Faults, "(?s)column ward: is missing; the rows have age, smoker.*column bmi"):
            self.encoding.encode([{"age": 1, "smoker": "no"}])

    def test_all_faults_at_once(self):
        rows = [{"age": "", "ward": "A", "smoker": "no", "bmi": 3}, {"age": "old", "ward": "A", "smoker": "perhaps", "bmi": "0x10"}]
        with self.assertRaises(coterie.Faults) as caught:
            self.encoding.encode(rows)
        self.assertEqual([f[:2] for f in caught.exception.faults], [(0, "age"), (1, "age"), (1, "smoker"), (1, "bmi")])

    def test_numbers_are_those_that_go_reads(self):
        for text, value in {"1": 1, " -2.50 ": -2.5, "+3.": 3, ".5": 0.5, "1e3": 1000, "1E-2": 0.01}.items():
            self.assertEqual(parse_number(text), value, text)
        for text in ("1_000", "0x10", "inf", "Infinity", "1e999", "1,5", ".", "--1", "\u0663", "1 2"):
            self.assertIsNone(parse_number(text), text)
        for text in ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?", None, float("nan")):
            self.assertTrue(np.isnan(parse_number(text)), text)

    def test_infinity_is_a_fault(self):
        rows = {"ward": ["A"], "smoker": ["no"], "bmi": [22]}
        for age in (np.array([np.inf]), [float("-inf")]):
            with self.assertRaisesRegex(coterie.Faults, "row 0, column age"):
                self.encoding.encode(dict(rows, age=age))

    def test_cells_as_text(self):
        self.assertEqual([as_text(c) for c in (3.0, 2.5, True, np.int64(4), None, " x ", b"y")], ["3", "2.5", "true", "4", "", "x", "y"])

    def test_yes_and_no_have_one_order(self):
        words = self.encoding.encode({"age": [60] * 4, "ward": ["A"] * 4, "smoker": ["no", "yes", "F", "1"], "bmi": [35] * 4})[:, 4]
        np.testing.assert_array_equal(words, [0, 1, 0, 1])
        turned = dict(ENCODING, classes=["ill", "well"])
        np.testing.assert_array_equal(coterie.Encoding(turned).encode_target({"readmitted": ["well", "ill", ""]}), [1, 0, np.nan])
        with self.assertRaises(coterie.Faults):
            coterie.Encoding(turned).encode_target({"readmitted": ["yes"]})

    def test_target_in_its_range(self):
        number = dict(ENCODING, task="number", classes=None, target_range=[10, 30])
        np.testing.assert_array_equal(coterie.Encoding(number).encode_target({"readmitted": ["10", 25, 99]}), [0, 0.75, 1])

    def test_wrong_encodings_are_refused(self):
        for change, words in (
            ({"inputs": ["age"]}, "make the inputs"), ({"task": "guess"}, "task"), ({"classes": ["yes"]}, "1 classes"),
            ({"columns": [{"name": "age", "type": "number"}]}, "range"), ({"columns": [{"name": "age", "type": "date"}]}, "date"),
            ({"columns": [{"name": "age", "type": "yes/no", "missing": "guess"}]}, "guess"), ({"task": "number"}, "target_range"),
        ):
            with self.assertRaisesRegex(ValueError, words):
                coterie.Encoding(dict(ENCODING, **change))


class CSVTest(unittest.TestCase):
    def read(self, raw, name="t.csv"):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / name
            path.write_bytes(raw)
            return coterie.read_csv(path)

    def test_marks_separators_and_quotes(self):
        want = {"a": ["1", "x, y"], "b c": ["", "3"]}
        self.assertEqual(self.read('\ufeffa, b c\n1,\n\n"x, y", 3\n'.encode()), want)
        self.assertEqual(self.read('a;b c\r\n1;\r\n"x, y";3'.encode()), want)
        self.assertEqual(self.read('a\tb c\n1\t\n"x, y"\t3\n'.encode()), want)
        self.assertEqual(self.read(gzip.compress('a,b c\n1,\n"x, y",3\n'.encode()), "t.csv.gz"), want)

    def test_the_separator_is_looked_for_outside_quotes(self):
        self.assertEqual(self.read(b'"a;;;",b\n1,2\n   \n'), {"a;;;": ["1"], "b": ["2"]})
        self.assertEqual(self.read(b"\n\na\n1\n\n2\n"), {"a": ["1", "2"]})

    def test_decimal_comma(self):
        """Where semicolons part the cells, 3,14 is a number of a number column, and text elsewhere."""
        cells = self.read(b"n;c\n3,14;3,14\n1.000,5;x\n")
        self.assertEqual(cells, {"n": ["3,14", "1.000,5"], "c": ["3,14", "x"]})
        self.assertEqual([parse_number(c) for c in cells["n"]], [3.14, None])
        self.assertEqual(as_text(cells["c"][0]), "3,14")
        self.assertIsNone(parse_number(self.read(b'n,c\n"3,14",1\n')["n"][0]))

    def test_faults_have_their_line(self):
        for raw, words in ((b"a,b\n1,2\n1\n", "line 3: 1 cells"), (b"", "no line"), (b"a,a\n", "twice in the header: a"), (b'a\n"x', "line 2")):
            with self.assertRaisesRegex(ValueError, words):
                self.read(raw)


if __name__ == "__main__":
    unittest.main()
